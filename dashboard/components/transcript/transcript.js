// A virtual list of steps: it holds the few that are in view and fetches the others by windows. Foreign text only ever goes into text nodes.

const CHUNK = 40; // steps of one request
const CHUNKS_KEPT = 60;
const GUESS = 150; // height of a step that was not measured yet, px
const AROUND = 300; // px above and below the view that are drawn too
const NODES = 170; // of all drawn steps; those around the view come only while there is room
const SELECTED_MOST = 80; // steps that a selection keeps drawn
const MATCHES_MOST = 2000;
const MARKS_MOST = 24; // mark elements of one block; further places are painted without elements
const FINDINGS_FIRST = 8;
const RETRY_MS = 3000;

const views = new WeakMap();

export default function (component) {
  const { data, parentElement } = component;
  const mount = parentElement.querySelector(".ins-mount"); // beside it lies the style sheet
  let view = views.get(parentElement);
  if (!view || view.key !== data.key || !mount.contains(view.root)) {
    view?.end();
    view = new View(mount, data);
    views.set(parentElement, view);
  } else {
    view.update(data);
  }
  return () => {
    views.get(parentElement)?.end();
    views.delete(parentElement);
  };
}

function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

function button(name, text, title, act) {
  const element = make("button", name, text);
  element.type = "button";
  if (title) element.title = title;
  element.onclick = act;
  return element;
}

const number = (n) => n.toLocaleString("en");

// Sums of heights, by a binary indexed tree: both a change and a question cost log n.
class Heights {
  constructor(count) {
    this.count = count;
    this.each = new Float64Array(count).fill(GUESS);
    this.tree = new Float64Array(count + 1);
    for (let i = 1; i <= count; i++) this.tree[i] += GUESS;
    for (let i = 1; i <= count; i++) {
      const above = i + (i & -i);
      if (above <= count) this.tree[above] += this.tree[i];
    }
  }
  set(at, height) {
    const change = height - this.each[at];
    if (Math.abs(change) < 0.5) return;
    this.each[at] = height;
    for (let i = at + 1; i <= this.count; i += i & -i) this.tree[i] += change;
  }
  before(at) {
    let sum = 0;
    for (let i = at; i > 0; i -= i & -i) sum += this.tree[i];
    return sum;
  }
  at(offset) {
    let place = 0;
    let left = offset;
    for (let bit = 1 << 30; bit; bit >>= 1) {
      const next = place + bit;
      if (next <= this.count && this.tree[next] <= left) {
        place = next;
        left -= this.tree[next];
      }
    }
    return Math.min(place, Math.max(this.count - 1, 0));
  }
}

// Offsets of spans count characters of the text as posted; the pieces say where those went in what is shown.
export function placeOf(pieces, offset) {
  let found = null;
  for (const piece of pieces || []) {
    if (piece[0] > offset) break;
    found = piece;
  }
  return found ? found[1] + (offset - found[0]) * found[2] : offset;
}

class View {
  constructor(parent, data) {
    this.key = data.key;
    this.steps = new Map(); // position -> {step, version}
    this.rows = new Map(); // position -> {element, signature}
    this.loading = new Map(); // first position -> controller
    this.evidence = new Map(); // position -> spans
    this.matches = [];
    this.matchesAt = new Map();
    this.found = { q: "", at: -1, more: false, omitted: 0, controller: null };
    this.current = null; // {step, field, start, end}
    this.selected = null;
    this.total = null;
    this.versions = 0;
    this.ended = false;
    this.build(parent);
    this.update(data);
    this.begin(data.target ?? { step: 0 });
  }

  async begin(place) {
    while (!this.ended && this.total === null) {
      await this.load(Math.floor(place.step / CHUNK) * CHUNK);
      if (this.total === null) await new Promise((go) => setTimeout(go, RETRY_MS));
    }
    if (!this.ended && this.total) this.goTo(place, false);
  }

  // --- the frame ------------------------------------------------------------------------------------------------------

  build(parent) {
    this.root = make("section", "ins-transcript");
    this.root.setAttribute("aria-label", "transcript");
    this.findings = make("div", "ins-findings");
    this.scroll = make("div", "ins-scroll");
    this.scroll.tabIndex = 0;
    this.above = make("div");
    this.below = make("div");
    this.scroll.append(this.above, this.below);
    this.root.append(this.findings, this.toolbar(), this.scroll);
    parent.replaceChildren(this.root);
    this.scroll.onscroll = () => {
      if (performance.now() - (this.moved ?? -1e9) > 300) this.toEnd = this.scroll.scrollTop + this.scroll.clientHeight >= this.scroll.scrollHeight - 2;
      this.later();
    };
    this.onKey = (event) => this.pressed(event);
    this.onSelect = () => this.selecting();
    document.addEventListener("keydown", this.onKey);
    document.addEventListener("selectionchange", this.onSelect);
    this.resize = new ResizeObserver(() => this.later());
    this.resize.observe(this.scroll);
  }

  toolbar() {
    const bar = make("div", "ins-bar");
    this.input = make("input", "ins-search");
    this.input.type = "search";
    this.input.placeholder = "search all steps";
    this.input.setAttribute("aria-label", "search all steps");
    this.input.oninput = () => this.searchSoon();
    this.input.onkeydown = (event) => {
      event.stopPropagation();
      if (event.key === "Enter") this.input.value.trim() === this.found.q ? this.nextMatch(event.shiftKey ? -1 : 1) : this.search();
      if (event.key === "Escape") this.clearSearch();
    };
    this.status = make("span", "ins-status");
    this.status.setAttribute("role", "status");
    this.jump = make("input", "ins-jump");
    this.jump.type = "number";
    this.jump.min = "0";
    this.jump.placeholder = "step";
    this.jump.title = "go to a step by its position, counted from 0";
    this.jump.setAttribute("aria-label", "go to step");
    this.jump.onkeydown = (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && this.jump.value !== "") this.visit({ step: Number(this.jump.value) });
    };
    this.where = make("span", "ins-where");
    const keys = make("span", "ins-keys", "j k step · n p evidence or match · / search");
    bar.append(this.input, this.status, make("span", "ins-gap"), keys, this.jump, this.where);
    return bar;
  }

  end() {
    this.ended = true;
    document.removeEventListener("keydown", this.onKey);
    document.removeEventListener("selectionchange", this.onSelect);
    this.resize.disconnect();
    cancelAnimationFrame(this.frame);
    clearTimeout(this.soon);
    for (const { controller } of this.loading.values()) controller.abort();
    this.found.controller?.abort();
    globalThis.CSS?.highlights?.delete("ins-found");
    this.root.remove();
  }

  update(data) {
    this.root.style.height = `calc(100vh - ${data.above}px)`;
    const told = JSON.stringify(data.findings);
    if (told !== this.told) {
      this.told = told;
      this.list = data.findings;
      this.evidence = new Map();
      for (const finding of data.findings) {
        for (const span of finding.spans) {
          if (!this.evidence.has(span.step)) this.evidence.set(span.step, []);
          this.evidence.get(span.step).push(span);
        }
      }
      this.ordered = data.findings.flatMap((finding) => finding.spans).sort((a, b) => a.step - b.step || a.start - b.start);
      this.versions++;
      this.paintFindings(false);
      this.later();
    }
    const asked = JSON.stringify(data.target ?? null);
    if (this.asked !== undefined && asked !== this.asked && data.target && this.total) this.goTo(data.target, false);
    this.asked = asked;
  }

  // --- findings -------------------------------------------------------------------------------------------------------

  paintFindings(all) {
    const shown = all ? this.list : this.list.slice(0, FINDINGS_FIRST);
    const rows = shown.map((finding) => this.findingRow(finding));
    if (!this.list.length) rows.push(make("div", "ins-none", "no findings: what ran and what did not stands under Coverage"));
    if (shown.length < this.list.length) {
      rows.push(button("ins-more", `show all ${number(this.list.length)} findings`, "", () => this.paintFindings(true)));
    }
    this.findings.replaceChildren(...rows);
  }

  findingRow(finding) {
    const row = make("div", `ins-finding ins-tier-${finding.tier}`);
    const message = make("div", "ins-message", finding.message);
    const places = make("div", "ins-places");
    const whole = finding.spans.length ? "" : "about the episode as a whole";
    places.append(make("span", "ins-facts", [finding.tier, finding.cause, finding.check, finding.score, whole].filter(Boolean).join(" · ")));
    row.append(message, places);
    for (const span of finding.spans.slice(0, 6)) {
      places.append(button("ins-place", `#${number(span.step)} ${span.label}`, span.quote || "go there", () => this.visit(span)));
    }
    if (finding.spans.length > 6) places.append(make("span", "ins-facts", `and ${number(finding.spans.length - 6)} more places (n, p)`));
    if (finding.spans.length) {
      message.onclick = () => !String(getSelection()) && this.visit(finding.spans[0]);
      message.classList.add("ins-link");
    }
    return row;
  }

  // --- loading --------------------------------------------------------------------------------------------------------

  async ask(path, controller) {
    const answer = await fetch(`/proxy/trajectories/${encodeURIComponent(this.key)}/${path}`, { credentials: "same-origin", signal: controller.signal });
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.reason || `the service answered ${answer.status}`);
    return body;
  }

  load(first) {
    const going = this.loading.get(first);
    if (going) return going.promise;
    if (this.holds(first)) return Promise.resolve();
    const controller = new AbortController();
    const promise = this.fetchChunk(first, controller).finally(() => {
      this.loading.delete(first);
      if (!this.ended) this.later();
    });
    this.loading.set(first, { controller, promise });
    return promise;
  }

  holds(first) {
    if (this.total === null) return false;
    for (let at = first; at < Math.min(first + CHUNK, this.total); at++) if (!this.steps.has(at)) return false;
    return true;
  }

  async fetchChunk(first, controller) {
    try {
      let from = first;
      const end = first + CHUNK;
      while (from < end && (this.total === null || from < this.total)) {
        const body = await this.ask(`steps?start=${from}&count=${end - from}`, controller); // fewer come where they are long
        this.setTotal(body.total);
        for (const step of body.steps) if (!this.steps.has(step.at)) this.steps.set(step.at, { step, version: ++this.versions });
        if (!body.steps.length) break;
        from += body.steps.length;
        this.later();
      }
      this.forget(first);
      if (this.failed) this.say("");
      this.failed = false;
    } catch (error) {
      if (error.name === "AbortError") return;
      this.failed = true;
      this.say(`steps could not be read: ${error.message}`, true);
    }
  }

  setTotal(total) {
    if (this.total !== null) return;
    this.total = total;
    this.heights = new Heights(total);
    this.jump.max = String(Math.max(total - 1, 0));
    if (!total) this.above.replaceChildren(make("div", "ins-none", "this trajectory has no steps"));
  }

  forget(kept) {
    const loaded = new Set([...this.steps.keys()].map((at) => Math.floor(at / CHUNK) * CHUNK));
    if (loaded.size <= CHUNKS_KEPT) return;
    const farthest = [...loaded].sort((a, b) => Math.abs(b - kept) - Math.abs(a - kept)).slice(0, loaded.size - CHUNKS_KEPT);
    for (const first of farthest) for (let at = first; at < first + CHUNK; at++) if (!this.rows.has(at)) this.steps.delete(at);
  }

  whole(at, field) {
    return this.change(at, field, `&whole=${encodeURIComponent(field)}`, true);
  }

  fold(at, field) {
    return this.change(at, field, "", false);
  }

  async change(at, field, asked, opened) {
    const body = await this.ask(`steps?start=${at}&count=1${asked}`, new AbortController());
    const held = this.steps.get(at);
    const came = body.steps[0]?.blocks.find((block) => block.field === field);
    if (!held || !came || this.ended) return;
    const blocks = held.step.blocks.map((block) => (block.field === field ? { ...came, opened } : block));
    this.steps.set(at, { step: { ...held.step, blocks }, version: ++this.versions });
    this.render();
  }

  // --- drawing --------------------------------------------------------------------------------------------------------

  later() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.render();
    });
  }

  render() {
    if (this.ended || !this.total) return;
    for (let round = 0; round < 4; round++) {
      const [from, to] = this.range();
      const top = this.scroll.scrollTop;
      const anchor = this.heights.at(top);
      const into = top - this.heights.before(anchor);
      this.draw(from, to);
      for (const [at, row] of this.rows) this.heights.set(at, row.element.offsetHeight);
      const last = Math.max(...this.rows.keys());
      this.above.style.height = `${this.heights.before(Math.min(...this.rows.keys()))}px`;
      this.below.style.height = `${this.heights.before(this.total) - this.heights.before(last + 1)}px`;
      const wanted = this.heights.before(anchor) + Math.min(into, this.heights.each[anchor]);
      if (this.toEnd) this.scroll.scrollTop = this.scroll.scrollHeight; // heights are guesses until measured: the end stays the end
      else if (Math.abs(wanted - top) > 1) this.scroll.scrollTop = wanted;
      const [again, end] = this.range();
      if (again >= from && end <= to) break;
    }
    this.fetchMissing();
    this.highlight();
    const at = this.heights.at(this.scroll.scrollTop + 4);
    this.where.textContent = `#${number(at)} of ${number(this.total)}`;
  }

  // The steps in view and around it, with what is selected.
  range() {
    const top = this.scroll.scrollTop;
    const end = top + this.scroll.clientHeight;
    let from = this.heights.at(top);
    let to = Math.min(this.heights.at(end) + 1, this.total);
    let room = NODES - this.nodesOf(from, to);
    for (;;) {
      const up = from > 0 && top - this.heights.before(from) < AROUND;
      const down = to < this.total && this.heights.before(to) - end < AROUND;
      if ((!up && !down) || room <= 0) break;
      if (down) room -= this.nodesOf(to, ++to);
      if (up) room -= this.nodesOf(--from, from + 1);
    }
    if (this.selected) {
      const [low, high] = [Math.min(from, this.selected[0]), Math.max(to, this.selected[1] + 1)];
      if (high - low <= SELECTED_MOST) [from, to] = [low, high];
    }
    return [from, to];
  }

  nodesOf(from, to) {
    let nodes = 0;
    for (let at = from; at < to; at++) {
      const held = this.steps.get(at);
      nodes += 4 + (held ? held.step.blocks.length * 3 + (held.step.notes?.length ? 1 : 0) : 1);
    }
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
      const signature = `${this.steps.get(at)?.version ?? 0}/${this.marksVersion(at)}`;
      let row = this.rows.get(at);
      if (!row || row.signature !== signature) {
        const element = this.stepElement(at);
        if (row) row.element.replaceWith(element);
        row = { element, signature };
        this.rows.set(at, row);
      }
      if (before.nextSibling !== row.element) before.after(row.element);
      before = row.element;
    }
  }

  marksVersion(at) {
    const current = this.current?.step === at ? JSON.stringify(this.current) : "";
    return `${this.evidence.has(at) ? this.told.length : 0}/${current}`;
  }

  stepElement(at) {
    const held = this.steps.get(at);
    const element = make("article", `ins-step ins-${held?.step.source ?? "waiting"}`);
    element.dataset.at = String(at);
    if (this.current?.step === at) element.classList.add("ins-here");
    const head = make("header", "ins-head");
    const link = make("a", "ins-at", `#${number(at)}`);
    link.href = this.address(at);
    link.title = "a link to this step";
    link.onclick = (event) => {
      if (event.metaKey || event.ctrlKey || event.button) return;
      event.preventDefault();
      this.visit({ step: at });
    };
    head.append(link, make("span", "ins-role", held?.step.source ?? "…"));
    if (held?.step.notes?.length) head.append(make("span", "ins-note", held.step.notes.join(" · ")));
    element.append(head);
    if (held) for (const block of held.step.blocks) element.append(this.blockElement(at, block));
    else element.style.minHeight = `${GUESS - 12}px`;
    return element;
  }

  blockElement(at, block) {
    const element = make("div", `ins-block ins-kind-${block.kind}`);
    if (block.label) element.append(make("span", "ins-label", block.label));
    const text = make("pre", "ins-text");
    text.dataset.field = block.field;
    this.fill(text, block, this.spansOf(at, block.field));
    element.append(text);
    if (block.head < block.length) {
      const hidden = this.hiddenPlaces(at, block);
      const more = hidden ? `, with ${hidden}` : "";
      element.append(
        button("ins-more", `show all ${number(block.length)} characters (${number(block.length - block.head)} more${more})`, "", () =>
          this.whole(at, block.field).catch((error) => this.say(`not readable: ${error.message}`, true)),
        ),
      );
    } else if (block.opened) {
      if (block.length > 20000) text.classList.add("ins-tall");
      element.append(button("ins-more", "show less", "", () =>
          this.fold(at, block.field).catch((error) => this.say(`not readable: ${error.message}`, true)),
        ),
      );
    }
    return element;
  }

  hiddenPlaces(at, block) {
    const evidence = (this.evidence.get(at) ?? []).filter((s) => s.field === block.field && s.end > block.head).length;
    return evidence ? `${evidence} marked as evidence` : "";
  }

  // Evidence and the place that was jumped to, as [start, end, class] in shown units, in order and without overlaps.
  spansOf(at, field) {
    const spans = (this.evidence.get(at) ?? []).filter((s) => s.field === field && s.end > s.start).map((s) => [s.start, s.end, "ins-evidence"]);
    if (this.current?.step === at && this.current.field === field && this.current.end > this.current.start) {
      spans.push([this.current.start, this.current.end, "ins-current"]);
    }
    return spans;
  }

  fill(element, block, spans) {
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

  // All other matches, painted without an element each where the browser can.
  highlight() {
    if (!globalThis.CSS?.highlights || typeof Highlight === "undefined") return;
    const ranges = [];
    for (const [at, row] of this.rows) {
      const held = this.steps.get(at);
      const here = this.matchesAt.get(at);
      if (!held || !here) continue;
      for (const match of here) {
        const block = held.step.blocks.find((b) => b.field === match.field);
        const text = block && [...row.element.querySelectorAll("pre")].find((pre) => pre.dataset.field === match.field);
        const range = text && rangeOf(text, placeOf(block.pieces, match.start), placeOf(block.pieces, match.end));
        if (range) ranges.push(range);
      }
    }
    ranges.length ? CSS.highlights.set("ins-found", new Highlight(...ranges)) : CSS.highlights.delete("ins-found");
  }

  fetchMissing() {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => {
      const missing = new Set();
      for (const at of this.rows.keys()) if (!this.steps.has(at)) missing.add(Math.floor(at / CHUNK) * CHUNK);
      for (const first of missing) this.load(first);
    }, this.failed ? RETRY_MS : 40);
  }

  // --- moving ---------------------------------------------------------------------------------------------------------

  address(at) {
    const address = new URL(location.href);
    address.searchParams.set("key", this.key);
    address.searchParams.set("step", String(at));
    return address.pathname + address.search;
  }

  // On a person's wish: the address follows, so that it can be handed on.
  visit(place) {
    if (!this.total) return;
    const at = Math.min(Math.max(Math.trunc(place.step) || 0, 0), this.total - 1);
    history.replaceState(history.state, "", this.address(at));
    this.goTo({ ...place, step: at }, true);
  }

  async goTo(place, focus) {
    const at = Math.min(Math.max(place.step, 0), Math.max(this.total - 1, 0));
    this.current = { step: at, field: place.field ?? "", start: place.start ?? 0, end: place.end ?? 0 };
    const turn = (this.turn = (this.turn ?? 0) + 1);
    this.toEnd = false;
    this.moved = Number.MAX_VALUE;
    this.scroll.scrollTop = this.heights.before(at);
    this.render();
    await this.load(Math.floor(at / CHUNK) * CHUNK);
    const block = this.steps.get(at)?.step.blocks.find((b) => b.field === place.field);
    if (block && block.head < block.length && (place.end ?? 0) > block.head) await this.whole(at, place.field).catch(() => {});
    if (this.ended || turn !== this.turn) return;
    for (let round = 0; round < 3; round++) {
      this.scroll.scrollTop = this.heights.before(at);
      this.render();
    }
    const mark = this.rows.get(at)?.element.querySelector(".ins-current");
    if (mark) {
      const inner = mark.closest(".ins-tall");
      if (inner) inner.scrollTop = mark.offsetTop - inner.offsetTop - inner.clientHeight / 3;
      const low = mark.getBoundingClientRect().top - this.scroll.getBoundingClientRect().top;
      if (low > this.scroll.clientHeight * 0.7) {
        this.scroll.scrollTop += low - this.scroll.clientHeight / 3;
        this.render();
      }
    }
    this.moved = performance.now();
    if (focus) this.scroll.focus({ preventScroll: true });
  }

  pressed(event) {
    if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return;
    const target = event.composedPath()[0];
    if (target instanceof Element && target.closest("input, textarea, select, [contenteditable=true], [role=dialog]")) return;
    const acts = {
      j: () => this.visit({ step: this.here() + 1 }),
      k: () => this.visit({ step: this.here() - 1 }),
      n: () => (this.matches.length ? this.nextMatch(1) : this.nextEvidence(1)),
      p: () => (this.matches.length ? this.nextMatch(-1) : this.nextEvidence(-1)),
      "/": () => this.input.focus(),
    };
    const act = acts[event.key];
    if (!act || !this.total) return;
    event.preventDefault();
    act();
  }

  here() {
    if (this.current && this.rows.has(this.current.step)) return this.current.step;
    return this.heights.at(this.scroll.scrollTop + 4);
  }

  nextEvidence(by) {
    if (!this.ordered.length) return;
    this.evidenceAt = ((this.evidenceAt ?? (by > 0 ? -1 : 0)) + by + this.ordered.length) % this.ordered.length;
    this.visit(this.ordered[this.evidenceAt]);
  }

  selecting() {
    const selection = getSelection();
    const ends = [selection?.anchorNode, selection?.focusNode].map((node) => (node instanceof Element ? node : node?.parentElement)?.closest?.(".ins-step"));
    const inside = ends.every((step) => step && this.scroll.contains(step)) && !selection.isCollapsed;
    this.selected = inside ? ends.map((step) => Number(step.dataset.at)).sort((a, b) => a - b) : null;
  }

  // --- searching ------------------------------------------------------------------------------------------------------

  searchSoon() {
    clearTimeout(this.typing);
    if (!this.input.value.trim()) return this.clearSearch();
    this.typing = setTimeout(() => this.input.value.trim().length > 1 && this.search(), 350);
  }

  clearSearch() {
    this.found.controller?.abort();
    this.input.value = "";
    this.matches = [];
    this.matchesAt = new Map();
    this.found = { q: "", at: -1, more: false, omitted: 0, controller: null };
    this.say("");
    this.later();
  }

  async search() {
    clearTimeout(this.typing);
    const q = this.input.value.trim();
    if (!q || q === this.found.q) return;
    this.found.controller?.abort();
    const found = (this.found = { q, at: -1, more: true, omitted: 0, scanned: 0, controller: new AbortController() });
    this.matches = [];
    this.matchesAt = new Map();
    const from = this.total ? this.here() : 0;
    let after = "";
    try {
      while (found.more && this.matches.length < MATCHES_MOST) {
        this.say(`searching… ${number(found.scanned)} steps`);
        const body = await this.ask(`search?q=${encodeURIComponent(q)}${after}`, found.controller);
        found.scanned += body.scanned;
        found.omitted += body.omitted;
        found.more = body.next !== null;
        after = `&after=${encodeURIComponent(body.next ?? "")}`;
        for (const match of body.matches) {
          this.matches.push(match);
          if (!this.matchesAt.has(match.step)) this.matchesAt.set(match.step, []);
          this.matchesAt.get(match.step).push(match);
        }
        if (found.at < 0 && this.matches.length) {
          const next = this.matches.findIndex((match) => match.step >= from);
          if (next >= 0 || !found.more) this.showMatch(Math.max(next, 0));
        }
      }
      if (found.at < 0 && this.matches.length) this.showMatch(0);
      this.sayMatches();
    } catch (error) {
      if (error.name !== "AbortError") this.say(`search failed: ${error.message}`, true);
    }
    this.later();
  }

  nextMatch(by) {
    if (this.matches.length) this.showMatch((this.found.at + by + this.matches.length) % this.matches.length);
  }

  showMatch(at) {
    this.found.at = at;
    this.sayMatches();
    this.visitQuietly(this.matches[at]);
  }

  visitQuietly(match) {
    history.replaceState(history.state, "", this.address(match.step));
    this.goTo(match, false);
  }

  sayMatches() {
    const { at, more, omitted, scanned } = this.found;
    if (!this.matches.length) return this.say(`no match in ${number(scanned)} steps`);
    const match = this.matches[at];
    const beyond = more ? `, and more beyond the first ${number(scanned)} steps` : "";
    const left = omitted ? `, ${number(omitted)} more in steps with over a hundred` : "";
    this.say(`${number(at + 1)} of ${number(this.matches.length)}${left}${beyond} · …${match.before.slice(-24)}[${match.match}]${match.after.slice(0, 24)}…`);
  }

  say(text, wrong = false) {
    this.status.textContent = text;
    this.status.title = text;
    this.status.classList.toggle("ins-wrong", wrong);
  }
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
