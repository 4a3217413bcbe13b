// One step as an element: a head, and a text for each of its blocks. Few elements, since many steps are in view.

import { button, make, number } from "../dom.js";
import { GUESS } from "./heights.js";
import { fill } from "./marks.js";

const LINE = 80; // characters of a text that stands beside its label
const TALL = 20_000; // characters of an opened text above which it scrolls by itself

// How many elements `stepElement` makes of it, about.
export function nodesOf(step) {
  return step ? 4 + step.blocks.length + step.blocks.filter((block) => block.head < block.length || block.opened).length : 4;
}

// `marks(field)`: spans to mark; `hidden(block)`: evidence beyond what is shown; `visit`, `open(field, whole)`: on a person's wish.
export function stepElement(at, step, { address, current, marks, hidden, visit, open }) {
  const element = make("article", `ins-step ins-${step?.source ?? "waiting"}`);
  element.dataset.at = String(at);
  if (current) element.classList.add("ins-here");
  element.append(headElement(at, step, address, visit));
  if (!step) element.style.minHeight = `${GUESS - 12}px`;
  for (const block of step?.blocks ?? []) {
    const text = make("pre", `ins-text ins-kind-${block.kind}`);
    text.dataset.field = block.field;
    if (block.text.length < LINE && !block.text.includes("\n")) text.classList.add("ins-line");
    if (block.label) text.dataset.label = block.label;
    if (block.opened && block.length > TALL) text.classList.add("ins-tall");
    fill(text, block, marks(block.field));
    element.append(text, ...opening(block, hidden(block), open));
  }
  return element;
}

function headElement(at, step, address, visit) {
  const head = make("header", "ins-head");
  const link = make("a", "ins-at", `#${number(at)}`);
  link.href = address;
  link.title = "a link to this step";
  link.onclick = (event) => {
    if (event.metaKey || event.ctrlKey || event.button) return;
    event.preventDefault();
    visit();
  };
  head.append(link, make("span", "ins-role", step?.source ?? "…"), (step?.notes ?? []).join(" · "));
  return head;
}

function opening(block, hidden, open) {
  if (block.head < block.length) {
    const more = `${number(block.length - block.head)} more${hidden ? `, with ${hidden} marked as evidence` : ""}`;
    return [button("ins-more", `show all ${number(block.length)} characters (${more})`, "", () => open(block.field, true))];
  }
  return block.opened ? [button("ins-more", "show less", "", () => open(block.field, false))] : [];
}
