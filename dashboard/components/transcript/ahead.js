// The first steps of a trajectory, asked for before anyone wants to see them.

const FIRST = 12;

let asked = globalThis.insAsked ?? []; // of {url, answer}: the page itself asks before there are scripts

const path = (key) => `/proxy/trajectories/${encodeURIComponent(key)}/`;

export const firstOf = (step) => `steps?start=${Math.max(step, 0)}&count=${FIRST}`;

export function get(url, signal) {
  return fetch(url, { credentials: "same-origin", signal });
}

export function askAhead(key) {
  const url = path(key) + firstOf(0);
  if (asked.some((one) => one.url === url)) return;
  const answer = get(url);
  answer.catch(() => {}); // whoever takes it says so
  asked = [{ url, answer }];
}

// The answer that is on its way already, given once; else a new one.
export function ask(key, what, signal) {
  const url = path(key) + what;
  const found = asked.find((one) => one.url === url);
  asked = asked.filter((one) => one !== found);
  return found ? found.answer : get(url, signal);
}
