// Takes the hints to preload scripts out of the document's head once they are followed: Streamlit leaves a hundred elements of them.

const HINT = "link[rel=modulepreload]";

function removeSpent() {
  for (const hint of document.head.querySelectorAll(HINT)) hint.remove();
}

new MutationObserver((changes) => {
  for (const added of changes.flatMap((change) => [...change.addedNodes])) {
    if (added instanceof Element && added.matches(HINT)) added.onload = added.onerror = () => added.remove();
  }
}).observe(document.head, { childList: true });

if (document.readyState === "complete") removeSpent();
else addEventListener("load", removeSpent, { once: true });
