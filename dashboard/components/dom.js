// Elements with text. Foreign text only ever goes into text nodes and attributes that hold no address.

export function make(tag, name, text) {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
}

export function button(name, text, title, act) {
  const element = make("button", name, text);
  element.type = "button";
  if (title) element.title = title;
  element.onclick = act;
  return element;
}

export const number = (n) => n.toLocaleString("en");

// Whether a key was pressed for the page: not in a field, and not for the browser.
export function forPage(event) {
  if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return false;
  const target = event.composedPath()[0];
  return !(target instanceof Element && target.closest("input, textarea, select, [contenteditable=true], [role=dialog]"));
}
