// The steps of one trajectory that are here, and the others fetched by windows.

import { ask, firstOf } from "./ahead.js";

const CHUNK = 40; // steps of a request, but for the first
const CHUNKS_KEPT = 60;
export const RETRY_MS = 3000;

const chunkOf = (at) => Math.floor(at / CHUNK) * CHUNK;

export class Steps {
  constructor(key, { changed, say }) {
    Object.assign(this, { key, changed, say });
    this.total = null;
    this.held = new Map(); // position -> {step, version}
    this.loading = new Map(); // first position of a chunk -> promise
    this.stopped = new AbortController();
    this.versions = 0;
    this.failed = false;
  }

  get ended() {
    return this.stopped.signal.aborted;
  }

  end() {
    this.stopped.abort();
  }

  at(position) {
    return this.held.get(position)?.step;
  }

  version(position) {
    return this.held.get(position)?.version ?? 0;
  }

  // Until the first window is here, however often it takes.
  async begin(position) {
    while (!this.ended && this.total === null) {
      await this.guarded(() => this.window(firstOf(position)));
      if (this.total === null && !this.ended) await new Promise((go) => setTimeout(go, RETRY_MS));
    }
  }

  load(position) {
    const first = chunkOf(position);
    if (!this.loading.has(first)) {
      const loaded = this.guarded(() => this.chunk(first)).finally(() => this.loading.delete(first) && this.changed());
      this.loading.set(first, loaded);
    }
    return this.loading.get(first);
  }

  missing(positions) {
    const first = new Set();
    for (const at of positions) if (!this.held.has(at)) first.add(chunkOf(at));
    return first;
  }

  async chunk(first) {
    const end = Math.min(first + CHUNK, this.total);
    let from = first;
    while (from < end) {
      if (this.held.has(from)) from++;
      else {
        const came = await this.window(`steps?start=${from}&count=${end - from}`); // fewer come where they are long
        if (!came) break;
        from += came;
      }
    }
  }

  async window(path) {
    const body = await this.ask(path);
    this.total ??= body.total;
    for (const step of body.steps) if (!this.held.has(step.at)) this.put(step);
    this.changed();
    return body.steps.length;
  }

  put(step) {
    this.held.set(step.at, { step, version: ++this.versions });
  }

  async guarded(act) {
    try {
      await act();
      if (this.failed) this.say("");
      this.failed = false;
    } catch (error) {
      if (error.name === "AbortError") return;
      this.failed = true;
      this.say(`steps could not be read: ${error.message}`, true);
    }
  }

  // What is far from `kept` goes, but for what is drawn.
  forget(kept, drawn) {
    const loaded = new Set([...this.held.keys()].map(chunkOf));
    if (loaded.size <= CHUNKS_KEPT) return;
    const farthest = [...loaded].sort((a, b) => Math.abs(b - kept) - Math.abs(a - kept)).slice(0, loaded.size - CHUNKS_KEPT);
    for (const first of farthest) for (let at = first; at < first + CHUNK; at++) if (!drawn.has(at)) this.held.delete(at);
  }

  // One text of a step to its end, or its head alone again.
  async open(position, field, whole) {
    const body = await this.ask(`steps?start=${position}&count=1${whole ? `&whole=${encodeURIComponent(field)}` : ""}`);
    const step = this.at(position);
    const came = body.steps[0]?.blocks.find((block) => block.field === field);
    if (!step || !came || this.ended) return;
    const blocks = step.blocks.map((block) => (block.field === field ? { ...came, opened: whole } : block));
    this.put({ ...step, blocks });
    this.changed();
  }

  async ask(path, signal = this.stopped.signal) {
    const answer = await ask(this.key, path, signal);
    const body = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(body.reason || `the service answered ${answer.status}`), { status: answer.status });
    return body;
  }
}
