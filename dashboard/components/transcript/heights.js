// The heights of all steps, measured or guessed, and their sums: by a binary indexed tree both a change and a question cost log n.

export const GUESS = 150; // height of a step that was not measured yet, px

export class Heights {
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
