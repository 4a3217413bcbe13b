// Begins the transcript that the address names while the page itself is still on its way.

import "../head.js";
import { make } from "../dom.js";
import { ask } from "./ahead.js";
import { drop, hold } from "./begun.js";
import { View } from "./view.js";

const PATIENCE_MS = 15_000;

const address = new URL(location.href).searchParams;
const [key, step] = [address.get("key"), Number(address.get("step")) || 0];

if (key) {
  const host = make("div", "ins-early");
  document.body.append(host);
  const view = new View(host, key, { step }, known(key));
  view.failed = drop; // the page says why
  view.painted = () => setTimeout(insStreamlit); // after the frame that shows the first steps
  hold(view, host);
  setTimeout(drop, PATIENCE_MS);
}

// What stands above the steps; null where that is not to be had, since the page comes with it too.
async function known(key) {
  const answer = await ask(key, "findings").catch(() => null);
  return answer?.ok ? answer.json().catch(() => null) : null;
}
