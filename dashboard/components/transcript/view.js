// The transcript of one trajectory: findings on top, then search and a virtual list of all its steps.

import { forPage, make, number } from "../dom.js";
import { askAhead } from "./ahead.js";
import { Findings } from "./findings.js";
import { List } from "./list.js";
import { highlight, unhighlight } from "./marks.js";
import { Search } from "./search.js";
import { stepElement } from "./step.js";
import { RETRY_MS, Steps } from "./steps.js";

const PATIENCE_MS = 400; // for what stands above the first steps

export class View {
  // `known`: a promise of title and findings, where the page has not come with them yet.
  constructor(parent, key, place, known) {
    this.key = key;
    this.current = null; // {step, field, start, end}
    this.turn = 0;
    this.steps = new Steps(key, { changed: () => this.list.later(), say: (text, wrong) => this.say(text, wrong) });
    this.findings = new Findings((span) => this.visit(span));
    this.list = new List(this.steps, { element: (at) => this.element(at), signature: (at) => this.signature(at), drawn: () => this.drawn() });
    this.search = new Search(this.steps, { here: () => (this.steps.total ? this.here() : 0), show: (match) => this.show(match), changed: () => this.list.later() });
    this.root = make("section", "ins-transcript");
    this.root.setAttribute("aria-label", "transcript");
    this.title = make("header", "ins-title");
    this.root.append(this.title, this.findings.root, this.toolbar(), this.list.scroll);
    parent.replaceChildren(this.root);
    this.onKey = (event) => this.pressed(event);
    document.addEventListener("keydown", this.onKey);
    this.begin(place, known?.then((told) => this.head(told)));
  }

  // The findings come with the first steps, so that they push nothing down; they are not waited for much longer.
  async begin(place, known) {
    if (known) await Promise.race([known, new Promise((go) => setTimeout(go, PATIENCE_MS))]);
    await this.steps.begin(place.step);
    if (this.ended) return;
    this.jump.max = String(Math.max(this.steps.total - 1, 0));
    if (this.steps.total) this.goTo(place, false);
    else this.list.above.replaceChildren(make("div", "ins-none", "this trajectory has no steps"));
  }

  toolbar() {
    const bar = make("div", "ins-bar");
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
    bar.append(this.search.input, this.search.status, make("span", "ins-keys", "j k step · n p evidence or match"), this.jump, this.where);
    return bar;
  }

  // What the page knows of it, now and whenever it knows better.
  update(data) {
    this.size = data.size;
    this.next = data.next;
    this.above(data);
    const asked = JSON.stringify(data.target ?? null);
    if (this.asked !== undefined && asked !== this.asked && data.target && this.steps.total) this.goTo(data.target, false);
    this.asked = asked;
  }

  // Title and findings, as they were told before the page was there; the page knows better.
  head(told) {
    if (told && this.asked === undefined && !this.ended) this.above(told);
  }

  above({ title: { task, place, verdict }, findings }) {
    this.title.replaceChildren(make("b", "", task), make("span", `ins-tone-${verdict}`, verdict), place);
    if (this.findings.update(findings)) this.list.later();
  }

  // To another place of the document, as it is.
  moveTo(parent) {
    const top = this.list.scroll.scrollTop;
    if (parent.moveBefore && parent.isConnected && this.root.isConnected) parent.moveBefore(this.root, null);
    else parent.replaceChildren(this.root);
    this.list.scroll.scrollTop = top;
  }

  say(text, wrong) {
    this.search.say(text, wrong);
    if (wrong) this.failed?.();
  }

  end() {
    this.ended = true;
    document.removeEventListener("keydown", this.onKey);
    clearTimeout(this.soon);
    this.steps.end();
    this.list.end();
    this.search.end();
    unhighlight();
    this.root.remove();
  }

  // --- drawing --------------------------------------------------------------------------------------------------------

  element(at) {
    return stepElement(at, this.steps.at(at), {
      address: this.address(at),
      current: this.current?.step === at,
      marks: (field) => this.marks(at, field),
      hidden: (block) => this.findings.marks(at, block.field).filter((s) => s.end > block.head).length,
      visit: () => this.visit({ step: at }),
      open: (field, whole) => this.steps.open(at, field, whole).catch((error) => this.search.say(`not readable: ${error.message}`, true)),
    });
  }

  marks(at, field) {
    const spans = this.findings.marks(at, field).map((s) => [s.start, s.end, "ins-evidence"]);
    const here = this.current;
    if (here?.step === at && here.field === field && here.end > here.start) spans.push([here.start, here.end, "ins-current"]);
    return spans;
  }

  signature(at) {
    const current = this.current?.step === at ? JSON.stringify(this.current) : "";
    return `${this.findings.evidence.has(at) ? this.findings.version : 0}/${current}`;
  }

  drawn() {
    if (this.painted) requestAnimationFrame(this.painted);
    this.painted = null;
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.fetchMissing(), this.steps.failed ? RETRY_MS : 40);
    highlight(this.list.rows, this.steps, this.search.matchesAt);
    const [first, last] = [number(this.list.first()), number(this.list.last())];
    this.where.textContent = `${first === last ? `#${first}` : `#${first}-${last}`} of ${number(this.steps.total)} steps${this.size ? ` · ${this.size}` : ""}`;
  }

  fetchMissing() {
    for (const first of this.steps.missing(this.list.rows.keys())) this.steps.load(first);
    this.steps.forget(this.list.first(), this.list.rows);
    if (this.next) askAhead(this.next);
    this.next = null;
  }

  // --- moving ---------------------------------------------------------------------------------------------------------

  here() {
    return this.current && this.list.rows.has(this.current.step) ? this.current.step : this.list.first();
  }

  address(at) {
    const address = new URL(location.href);
    address.searchParams.set("key", this.key);
    address.searchParams.set("step", String(at));
    return address.pathname + address.search;
  }

  // On a person's wish: the address follows, so that it can be handed on.
  visit(place) {
    this.show(place, true);
  }

  show(place, focus = false) {
    if (!this.steps.total) return;
    const step = Math.min(Math.max(Math.trunc(place.step) || 0, 0), this.steps.total - 1);
    history.replaceState(history.state, "", this.address(step));
    this.goTo({ ...place, step }, focus);
  }

  async goTo(place, focus) {
    const at = Math.min(Math.max(place.step, 0), this.steps.total - 1);
    this.current = { step: at, field: place.field ?? "", start: place.start ?? 0, end: place.end ?? 0 };
    const turn = ++this.turn;
    this.list.toTop(at);
    if (!this.steps.at(at)) await this.steps.load(at);
    const block = this.steps.at(at)?.blocks.find((b) => b.field === place.field);
    if (block && block.head < block.length && (place.end ?? 0) > block.head) await this.steps.open(at, place.field, true).catch(() => {});
    if (this.ended || turn !== this.turn) return;
    this.list.settle(at);
    if (focus) this.list.scroll.focus({ preventScroll: true });
  }

  pressed(event) {
    const acts = {
      j: () => this.visit({ step: this.here() + 1 }),
      k: () => this.visit({ step: this.here() - 1 }),
      n: () => (this.search.any ? this.search : this.findings).next(1),
      p: () => (this.search.any ? this.search : this.findings).next(-1),
      "/": () => this.search.input.focus(),
    };
    const act = acts[event.key];
    if (!act || !this.steps.total || !forPage(event)) return;
    event.preventDefault();
    act();
  }
}
