// The list of what waits for a person. Foreign text only ever goes into text nodes.

import { make } from "../dom.js";
import "../focus.js";
import "../head.js";
import { askAhead } from "../transcript/ahead.js";
import { drop } from "../transcript/begun.js";
import { chooser, mark, walk } from "../walk.js";

const LOOKED_AT_MS = 600; // a row chosen for so long may be opened next

const views = new WeakMap();

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  drop();
  const mount = parentElement.querySelector(".ins-mount"); // beside it lies the style sheet
  const held = views.get(parentElement) ?? {};
  views.set(parentElement, held);
  held.data = data;
  held.choose = chooser(held, setStateValue);
  const told = JSON.stringify([data.rows, data.empty]);
  if (told !== held.told || !mount.firstChild) {
    held.told = told;
    draw(held, mount);
  }
  held.chosen = data.chosen;
  mark(held);
  lookAhead(held);
  if (!held.pressed) {
    held.pressed = (event) => walk(held, event);
    document.addEventListener("keydown", held.pressed);
  }
  return () => {
    document.removeEventListener("keydown", held.pressed);
    clearTimeout(held.soon);
    views.delete(parentElement);
  };
}

function lookAhead(held) {
  clearTimeout(held.soon);
  held.soon = setTimeout(() => {
    import("../transcript/main.js");
    if (held.chosen) askAhead(held.chosen);
  }, LOOKED_AT_MS);
}

function draw(held, parent) {
  const list = make("div", "ins-queue");
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "what waits for a person, worst first");
  const head = make("div", "ins-row ins-heading");
  for (const name of ["verdict, p", "why it is here", "environment / task", "reward, size", "action, received", ""]) head.append(make("div", "", name));
  list.append(head);
  held.rows = new Map();
  for (const row of held.data.rows) {
    const element = rowElement(row, held);
    held.rows.set(row.key, element);
    list.append(element);
  }
  if (!held.data.rows.length) list.append(make("div", "ins-empty", held.data.empty));
  parent.replaceChildren(list);
}

function rowElement(row, held) {
  const element = make("div", `ins-row ins-verdict-${row.verdict}`);
  element.setAttribute("role", "option");
  element.tabIndex = -1;
  const verdict = make("div", "ins-verdict", row.verdict);
  verdict.append(make("small", "", row.probability));
  const why = make("div", "ins-why");
  why.append(make("div", "ins-message", row.why), make("div", "ins-meta", row.source));
  const place = make("div", "ins-of");
  place.append(make("div", "", row.place), make("div", "ins-meta", row.run));
  const paid = make("div", "ins-paid");
  paid.append(make("div", row.scored ? "" : "ins-none", row.reward), make("div", "ins-meta", row.size));
  const action = make("div", "ins-action", row.action);
  action.append(make("div", "ins-meta", row.received));
  const open = make("a", "ins-open", "open");
  open.href = row.address;
  open.target = "_self";
  open.onclick = (event) => event.stopPropagation();
  element.append(verdict, why, place, paid, action, open);
  element.onclick = () => !String(getSelection()) && held.choose(row.key);
  return element;
}
