// Evidence and matches: where they lie in a shown text, and how they are marked.

import { make } from "../dom.js";

const MARKS_MOST = 24; // mark elements of one block; further places are painted without elements
const FOUND = "ins-found";

// Offsets of spans count characters of the text as posted; the pieces say where those went in what is shown.
export function placeOf(pieces, offset) {
  let found = null;
  for (const piece of pieces || []) {
    if (piece[0] > offset) break;
    found = piece;
  }
  return found ? found[1] + (offset - found[0]) * found[2] : offset;
}

// `spans`: [start, end, class]; they may overlap, and the class `ins-current` wins.
export function fill(element, block, spans) {
  const edges = [...new Set(spans.flatMap(([start, end]) => [start, end]))].sort((a, b) => a - b).slice(0, MARKS_MOST * 2);
  const parts = [];
  let shown = 0;
  for (let i = 0; i + 1 < edges.length; i++) {
    const over = spans.filter(([start, end]) => start <= edges[i] && end >= edges[i + 1]);
    if (!over.length) continue;
    const [from, to] = [placeOf(block.pieces, edges[i]), placeOf(block.pieces, edges[i + 1])];
    if (from >= block.text.length) break;
    if (from > shown) parts.push(document.createTextNode(block.text.slice(shown, from)));
    parts.push(make("mark", over.some((s) => s[2] === "ins-current") ? "ins-current" : "ins-evidence", block.text.slice(from, to)));
    shown = Math.max(shown, to);
  }
  parts.push(document.createTextNode(block.text.slice(shown)));
  element.replaceChildren(...parts);
}

// Matches in what is drawn, painted without an element each where the browser can.
export function highlight(rows, steps, matchesAt) {
  if (!globalThis.CSS?.highlights || typeof Highlight === "undefined") return;
  const ranges = [];
  for (const [at, row] of rows) {
    const step = steps.at(at);
    for (const match of (step && matchesAt.get(at)) ?? []) {
      const block = step.blocks.find((b) => b.field === match.field);
      const text = block && [...row.element.querySelectorAll("pre")].find((pre) => pre.dataset.field === match.field);
      const range = text && rangeOf(text, placeOf(block.pieces, match.start), placeOf(block.pieces, match.end));
      if (range) ranges.push(range);
    }
  }
  ranges.length ? CSS.highlights.set(FOUND, new Highlight(...ranges)) : unhighlight();
}

export function unhighlight() {
  globalThis.CSS?.highlights?.delete(FOUND);
}

function rangeOf(element, start, end) {
  const range = document.createRange();
  let at = 0;
  let open = false;
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const next = at + node.data.length;
    if (!open && start < next) {
      range.setStart(node, start - at);
      open = true;
    }
    if (open && end <= next) {
      range.setEnd(node, end - at);
      return range;
    }
    at = next;
  }
  return null;
}
