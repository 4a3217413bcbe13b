// Begins the transcript that the address names while the page itself is still on its way.

import "../head.js";
import { make } from "../dom.js";
import { drop, hold } from "./begun.js";
import { View } from "./view.js";

const PATIENCE_MS = 15_000;

const address = new URL(location.href).searchParams;
const [key, step] = [address.get("key"), Number(address.get("step")) || 0];

if (key) {
  const host = make("div", "ins-early");
  document.body.append(host);
  const view = new View(host, key, { step });
  view.failed = drop; // the page says why
  view.painted = () => setTimeout(insStreamlit); // after the frame that shows the first steps
  hold(view, host);
  setTimeout(drop, PATIENCE_MS);
}
