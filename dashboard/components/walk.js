// Walking a list: one line of it is chosen, j and k move on. `held` has `rows` (key -> element), `chosen` and `choose`.
// The server is told at once, since a key that acts on the line may follow; when, so that a line chosen again is news.

import { forPage } from "./dom.js";

export function chooser(held, setStateValue) {
  return (key) => {
    if (!key || key === held.chosen) return;
    held.chosen = key;
    mark(held);
    setStateValue("chosen", { key, at: Date.now() });
  };
}

export function mark(held) {
  for (const [key, element] of held.rows ?? []) {
    const here = key === held.chosen;
    const before = element.classList.contains("ins-chosen");
    element.classList.toggle("ins-chosen", here);
    element.setAttribute("aria-selected", String(here));
    if (here && !before) element.scrollIntoView({ block: "nearest" });
  }
}

export function walk(held, event) {
  const by = { j: 1, k: -1 }[event.key];
  if (!by || !held.rows?.size || !forPage(event)) return;
  event.preventDefault();
  const keys = [...held.rows.keys()];
  const at = keys.indexOf(held.chosen);
  held.choose(keys[Math.min(Math.max(at < 0 ? 0 : at + by, 0), keys.length - 1)]);
}
