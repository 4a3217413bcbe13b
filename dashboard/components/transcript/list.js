// A virtual list: only the steps in view are drawn, and those around them while the document has room.

import { make } from "../dom.js";
import { Heights } from "./heights.js";
import { nodesOf } from "./step.js";

const AROUND = 300; // px above and below the view that are drawn too
const NODES = 280; // of the whole document; steps around the view come only while there is room
const SELECTED_MOST = 80; // steps that a selection keeps drawn
const SETTLED_MS = 300; // after a jump, within which a scroll event is the jump's own

export class List {
  // `element(at)` draws a step, `signature(at)` changes with how it looks, `drawn()` is called after every drawing.
  constructor(steps, { element, signature, drawn }) {
    Object.assign(this, { steps, element, signature, drawn });
    this.rows = new Map(); // position -> {element, signature}
    this.selected = null; // positions of the first and the last selected step
    this.moved = -Infinity;
    this.scroll = make("div", "ins-scroll");
    this.scroll.tabIndex = 0;
    this.above = make("div");
    this.below = make("div");
    this.scroll.append(this.above, this.below);
    this.scroll.onscroll = () => {
      if (performance.now() - this.moved > SETTLED_MS) this.toEnd = this.scroll.scrollTop + this.scroll.clientHeight >= this.scroll.scrollHeight - 2;
      this.later();
    };
    this.onSelect = () => this.selecting();
    document.addEventListener("selectionchange", this.onSelect);
    this.resize = new ResizeObserver(() => this.later());
    this.resize.observe(this.scroll);
  }

  end() {
    this.ended = true;
    document.removeEventListener("selectionchange", this.onSelect);
    this.resize.disconnect();
    cancelAnimationFrame(this.frame);
  }

  later() {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.render();
    });
  }

  render() {
    if (this.ended || !this.steps.total) return;
    this.prepare();
    for (let round = 0; round < 4; round++) {
      const [from, to] = this.range();
      const top = this.scroll.scrollTop;
      const anchor = this.heights.at(top);
      const into = top - this.heights.before(anchor);
      this.draw(from, to);
      for (const [at, row] of this.rows) this.heights.set(at, row.element.offsetHeight);
      this.above.style.height = `${this.heights.before(from)}px`;
      this.below.style.height = `${this.heights.before(this.steps.total) - this.heights.before(to)}px`;
      const wanted = this.heights.before(anchor) + Math.min(into, this.heights.each[anchor]);
      if (this.toEnd) this.scroll.scrollTop = this.scroll.scrollHeight; // heights are guesses until measured: the end stays the end
      else if (Math.abs(wanted - top) > 1) this.scroll.scrollTop = wanted;
      const [again, end] = this.range();
      if (again >= from && end <= to) break;
    }
    this.drawn();
  }

  prepare() {
    this.heights ??= new Heights(this.steps.total);
  }

  first() {
    return this.heights.at(this.scroll.scrollTop + 4);
  }

  last() {
    return Math.max(this.first(), Math.min(this.heights.at(this.scroll.scrollTop + this.scroll.clientHeight - 4), this.steps.total - 1));
  }

  // The steps in view and around it, with what is selected.
  range() {
    const top = this.scroll.scrollTop;
    const end = top + this.scroll.clientHeight;
    let from = this.heights.at(top);
    let to = Math.min(this.heights.at(end) + 1, this.steps.total);
    let room = this.room() - this.nodes(from, to);
    for (;;) {
      const up = from > 0 && top - this.heights.before(from) < AROUND;
      const down = to < this.steps.total && this.heights.before(to) - end < AROUND;
      if ((!up && !down) || room <= 0) break;
      if (down) room -= this.nodes(to, ++to);
      if (up) room -= this.nodes(--from, from + 1);
    }
    if (this.selected) {
      const [low, high] = [Math.min(from, this.selected[0]), Math.max(to, this.selected[1] + 1)];
      if (high - low <= SELECTED_MOST) [from, to] = [low, high];
    }
    return [from, to];
  }

  room() {
    return NODES - (document.getElementsByTagName("*").length - this.scroll.getElementsByTagName("*").length);
  }

  nodes(from, to) {
    let nodes = 0;
    for (let at = from; at < to; at++) nodes += nodesOf(this.steps.at(at));
    return nodes;
  }

  draw(from, to) {
    for (const [at, row] of this.rows) {
      if (at < from || at >= to) {
        row.element.remove();
        this.rows.delete(at);
      }
    }
    let before = this.above;
    for (let at = from; at < to; at++) {
      const signature = `${this.steps.version(at)}/${this.signature(at)}`;
      let row = this.rows.get(at);
      if (!row || row.signature !== signature) {
        const element = this.element(at);
        if (row) row.element.replaceWith(element);
        row = { element, signature };
        this.rows.set(at, row);
      }
      if (before.nextSibling !== row.element) before.after(row.element);
      before = row.element;
    }
  }

  selecting() {
    const selection = getSelection();
    const ends = [selection?.anchorNode, selection?.focusNode].map((node) => (node instanceof Element ? node : node?.parentElement)?.closest?.(".ins-step"));
    const inside = ends.every((step) => step && this.scroll.contains(step)) && !selection.isCollapsed;
    this.selected = inside ? ends.map((step) => Number(step.dataset.at)).sort((a, b) => a - b) : null;
  }

  // Step `at` to the top; what is loaded meanwhile does not move it.
  toTop(at) {
    this.prepare();
    this.toEnd = false;
    this.moved = Infinity;
    this.scroll.scrollTop = this.heights.before(at);
    this.render();
  }

  // Once it is loaded: heights settle, and a mark that lies too low comes into view.
  settle(at) {
    for (let round = 0; round < 3; round++) {
      this.scroll.scrollTop = this.heights.before(at);
      this.render();
    }
    const mark = this.rows.get(at)?.element.querySelector(".ins-current");
    if (mark) this.reveal(mark);
    this.moved = performance.now();
  }

  reveal(mark) {
    const inner = mark.closest(".ins-tall");
    if (inner) inner.scrollTop = mark.offsetTop - inner.offsetTop - inner.clientHeight / 3;
    const low = mark.getBoundingClientRect().top - this.scroll.getBoundingClientRect().top;
    if (low <= this.scroll.clientHeight * 0.7) return;
    this.scroll.scrollTop += low - this.scroll.clientHeight / 3;
    this.render();
  }
}
