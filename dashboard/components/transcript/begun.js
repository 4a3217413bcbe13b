// The transcript that was begun before the page was there: held here until the page takes it over or shows something else.

let held = null; // {view, host}

export function hold(view, host) {
  held = { view, host };
}

// Into `mount`, where it is the one that the page wants.
export function take(key, mount) {
  const view = held?.view.key === key ? held.view : null;
  if (view) {
    view.moveTo(mount);
    view.failed = null;
    held.host.remove();
    held = null;
  } else drop();
  return view;
}

export function drop() {
  held?.view.end();
  held?.host.remove();
  held = null;
}
