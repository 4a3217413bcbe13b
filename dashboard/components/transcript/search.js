// The search of all steps, which the service does; matches come by pages and are walked one by one.

import { make, number } from "../dom.js";

const MATCHES_MOST = 2000;
const TYPING_MS = 350;

export class Search {
  // `here()`: the position from where to look; `show(match)` goes there; `changed()` when the matches are others.
  constructor(steps, { here, show, changed }) {
    Object.assign(this, { steps, here, show, changed });
    this.input = make("input", "ins-search");
    this.input.type = "search";
    this.input.placeholder = "search all steps  /";
    this.input.setAttribute("aria-label", "search all steps");
    this.input.oninput = () => this.soon();
    this.input.onkeydown = (event) => {
      event.stopPropagation();
      if (event.key === "Enter") this.input.value.trim() === this.found.q ? this.next(event.shiftKey ? -1 : 1) : this.search();
      if (event.key === "Escape") this.clear();
    };
    this.status = make("span", "ins-status");
    this.status.setAttribute("role", "status");
    this.reset("");
  }

  get any() {
    return this.matches.length > 0;
  }

  end() {
    clearTimeout(this.typing);
    this.found.controller.abort();
  }

  reset(q) {
    this.found?.controller.abort();
    this.matches = [];
    this.matchesAt = new Map();
    this.found = { q, at: -1, more: Boolean(q), omitted: 0, scanned: 0, after: "", controller: new AbortController() };
    return this.found;
  }

  clear() {
    this.input.value = "";
    this.reset("");
    this.say("");
    this.changed();
  }

  soon() {
    clearTimeout(this.typing);
    if (!this.input.value.trim()) return this.clear();
    this.typing = setTimeout(() => this.input.value.trim().length > 1 && this.search(), TYPING_MS);
  }

  async search() {
    clearTimeout(this.typing);
    const q = this.input.value.trim();
    if (!q || q === this.found.q) return;
    const found = this.reset(q);
    try {
      await this.collect(found, this.here());
      if (found.at < 0 && this.any) this.go(0);
      this.tell();
    } catch (error) {
      if (error.name !== "AbortError") this.say(`search failed: ${error.message}`, true);
    }
    this.changed();
  }

  async collect(found, from) {
    while (found.more && this.matches.length < MATCHES_MOST) {
      this.say(`searching… ${number(found.scanned)} steps`);
      const body = await this.steps.ask(`search?q=${encodeURIComponent(found.q)}${found.after}`, found.controller.signal);
      found.scanned += body.scanned;
      found.omitted += body.omitted;
      found.more = body.next !== null;
      found.after = `&after=${encodeURIComponent(body.next ?? "")}`;
      for (const match of body.matches) this.add(match);
      const next = found.at < 0 ? this.matches.findIndex((match) => match.step >= from) : -1;
      if (next >= 0) this.go(next);
    }
  }

  add(match) {
    this.matches.push(match);
    if (!this.matchesAt.has(match.step)) this.matchesAt.set(match.step, []);
    this.matchesAt.get(match.step).push(match);
  }

  next(by) {
    if (this.any) this.go((this.found.at + by + this.matches.length) % this.matches.length);
  }

  go(at) {
    this.found.at = at;
    this.tell();
    this.show(this.matches[at]);
  }

  tell() {
    const { at, more, omitted, scanned } = this.found;
    if (!this.any) return this.say(`no match in ${number(scanned)} steps`);
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
