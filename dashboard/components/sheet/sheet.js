// Sections of labelled facts. Foreign text only ever goes into text nodes.

import { make } from "../dom.js";

const held = new WeakMap();

export default function (component) {
  const { data, parentElement } = component;
  const mount = parentElement.querySelector(".ins-mount"); // beside it lies the style sheet
  const told = JSON.stringify(data.sections);
  if (held.get(mount) === told) return;
  held.set(mount, told);
  const open = new Set([...mount.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
  mount.replaceChildren(...data.sections.map((section) => sectionElement(section, open)));
}

function sectionElement(section, open) {
  const element = make(section.folded ? "details" : "section", "ins-sheet");
  if (open.has(section.title)) element.open = true;
  const facts = make("dl", "");
  const title = make(section.folded ? "summary" : "h4", "", section.title);
  element.append(title, facts);
  const fill = () => facts.childElementCount || facts.append(...section.facts.flatMap(factElements));
  if (section.folded && !element.open) element.ontoggle = fill;
  else fill();
  return element;
}

function factElements(fact) {
  const text = make("dd", fact.tone ? `ins-tone-${fact.tone}` : "", fact.text);
  return fact.label ? [make("dt", "", fact.label), text] : [text]; // without a label it goes on with the one above
}
