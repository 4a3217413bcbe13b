// A list in columns under a title. Foreign text only ever goes into text nodes.

import { make } from "../dom.js";
import "../focus.js";
import "../head.js";
import { drop } from "../transcript/begun.js";
import { chooser, mark, walk } from "../walk.js";

const views = new WeakMap();

export default function (component) {
  const { data, parentElement, setStateValue } = component;
  drop();
  const mount = parentElement.querySelector(".ins-mount"); // beside it lies the style sheet
  const held = views.get(parentElement) ?? {};
  views.set(parentElement, held);
  held.choose = chooser(held, setStateValue);
  const told = JSON.stringify(data.listed);
  if (told !== held.told || !mount.firstChild) {
    held.told = told;
    draw(held, mount, data.listed);
  }
  held.chosen = data.chosen;
  mark(held);
  if (!held.pressed) {
    held.pressed = (event) => walk(held, event);
    document.addEventListener("keydown", held.pressed);
  }
  return () => {
    document.removeEventListener("keydown", held.pressed);
    views.delete(parentElement);
  };
}

function draw(held, mount, listed) {
  const list = make("div", `ins-listing ins-of-${listed.kind}`);
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", listed.title.text || listed.kind);
  const head = make("div", "ins-line ins-heads");
  head.append(...listed.heads.map((name) => make("div", "", name)));
  if (listed.rows.length) list.append(head);
  else list.append(make("div", "ins-nothing", listed.empty));
  held.rows = new Map();
  for (const row of listed.rows) {
    const element = rowElement(row, held);
    held.rows.set(row.key, element);
    list.append(element);
  }
  mount.replaceChildren(...(listed.title.text ? [titleElement(listed.title)] : []), list);
}

function titleElement(title) {
  const element = make("div", "ins-list-title");
  element.append(make("h3", "", title.text), ...title.chips.map(chipElement), make("small", "", title.note));
  return element;
}

function rowElement(row, held) {
  const element = make("div", "ins-line");
  element.setAttribute("role", "option");
  element.tabIndex = -1;
  element.append(...row.cells.map(cellElement));
  if (row.address) {
    const open = make("a", "ins-opens", "open");
    open.href = row.address;
    open.target = "_self";
    open.onclick = (event) => event.stopPropagation();
    element.append(open);
  }
  element.onclick = () => !String(getSelection()) && held.choose(row.key);
  return element;
}

function cellElement(cell) {
  const element = make("div", cell.tone ? `ins-tone-${cell.tone}` : "", cell.text);
  element.append(...cell.chips.map(chipElement));
  if (cell.note) element.append(make("small", "", cell.note));
  return element;
}

const chipElement = (chip) => make("span", `ins-chip ins-tone-${chip.tone || "plain"}`, chip.text);
