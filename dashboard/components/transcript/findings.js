// The findings above the transcript, each with the places that it rests on.

import { button, make, number } from "../dom.js";

const FIRST = 5; // findings shown before a person asks for all
const QUOTED = 3; // places of one finding whose text is shown with it
const PLACES = 6; // of one finding

export class Findings {
  constructor(visit) {
    this.visit = visit;
    this.root = make("div", "ins-findings");
    this.evidence = new Map(); // position -> spans
    this.ordered = [];
    this.version = 0;
  }

  // True where they are other than before.
  update(list) {
    const told = JSON.stringify(list);
    if (told === this.told) return false;
    Object.assign(this, { told, list, version: this.version + 1 });
    this.ordered = list.flatMap((finding) => finding.spans).sort((a, b) => a.step - b.step || a.start - b.start);
    this.evidence = new Map();
    for (const span of this.ordered) this.evidence.set(span.step, [...(this.evidence.get(span.step) ?? []), span]);
    this.paint(list.length <= FIRST);
    return true;
  }

  marks(at, field) {
    return (this.evidence.get(at) ?? []).filter((s) => s.field === field && s.end > s.start);
  }

  next(by) {
    if (!this.ordered.length) return;
    this.at = ((this.at ?? (by > 0 ? -1 : 0)) + by + this.ordered.length) % this.ordered.length;
    this.visit(this.ordered[this.at]);
  }

  paint(all) {
    const rows = (all ? this.list : this.list.slice(0, FIRST)).map((finding) => this.row(finding));
    if (!this.list.length) rows.push(make("div", "ins-none", "No findings. What ran and what did not stands under Coverage."));
    if (!all) rows.push(button("ins-more", `show all ${number(this.list.length)} findings`, "", () => this.paint(true)));
    this.root.replaceChildren(...rows);
  }

  row(finding) {
    const row = make("div", `ins-finding ins-tier-${finding.tier}`);
    const message = make("div", "ins-message", finding.message);
    const whole = finding.spans.length ? "" : "about the episode as a whole";
    const facts = make("div", "ins-facts", [finding.tier, finding.cause, finding.check, finding.score, whole].filter(Boolean).join(" · "));
    row.append(message, facts);
    finding.spans.slice(0, PLACES).forEach((span, at) => (span.quote && at < QUOTED ? row : facts).append(this.place(span, at < QUOTED)));
    if (finding.spans.length > PLACES) facts.append(`and ${number(finding.spans.length - PLACES)} more places (n, p)`);
    if (finding.spans.length) {
      message.onclick = () => !String(getSelection()) && this.visit(finding.spans[0]);
      message.classList.add("ins-link");
    }
    return row;
  }

  // The passage itself, or the name of its place alone.
  place(span, quoted) {
    const label = `step #${number(span.step)} · ${span.label}`;
    if (!quoted || !span.quote) return button("ins-place", label, span.quote || "go there", () => this.visit(span));
    const quote = make("pre", "ins-quote", span.quote);
    quote.dataset.label = label;
    quote.tabIndex = 0;
    quote.setAttribute("role", "link");
    quote.onclick = () => !String(getSelection()) && this.visit(span);
    quote.onkeydown = (event) => event.key === "Enter" && this.visit(span);
    return quote;
  }
}
