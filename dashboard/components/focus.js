// Where the keyboard goes: back to the page once something was chosen, and into the field that a key has opened.

const CHOICE = "input[role=combobox]";
const FIELD = "[data-testid=stForm] input";
const GIVEN_BACK_MS = 60; // after a choice Streamlit puts the focus into its field again, where keys are text

let opened = null;

const leave = () => setTimeout(() => document.activeElement?.matches(CHOICE) && document.activeElement.blur(), GIVEN_BACK_MS);

document.addEventListener("click", (event) => event.target.closest?.("[role=option]") && leave(), true);
document.addEventListener(
  "keydown",
  (event) => {
    if (event.key === "Enter" && event.target.matches?.(CHOICE)) leave();
    if (event.key === "Escape" && event.target.matches?.(FIELD)) event.target.blur();
  },
  true,
);

new MutationObserver(() => {
  const field = document.querySelector(FIELD);
  if (field && field !== opened) {
    field.focus();
    field.select();
  }
  opened = field;
}).observe(document.body, { childList: true, subtree: true });
