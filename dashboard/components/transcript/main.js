// Mounts the transcript in the page: the one that was begun before the page was there, or a new one.

import "../focus.js";
import "../head.js";
import { take } from "./begun.js";
import { View } from "./view.js";

const views = new WeakMap();

export default function (component) {
  const { data, parentElement } = component;
  const mount = parentElement.querySelector(".ins-mount"); // beside it lies the style sheet
  let view = views.get(parentElement);
  if (view?.key !== data.key || !mount.contains(view.root)) {
    view?.end();
    view = take(data.key, mount) ?? new View(mount, data.key, data.target ?? { step: 0 });
    views.set(parentElement, view);
  }
  view.update(data);
  return () => {
    views.get(parentElement)?.end();
    views.delete(parentElement);
  };
}
