import { isTouched } from "./touched.js";

// What was typed or chosen before htmx listened, which it does only a moment after the page has loaded.
function early(form) {
  globalThis.htmx.process(form);
  const query = new URLSearchParams(location.search);
  const control = [...form.elements].find(
    (each) => each.name && isTouched(each) && each.value !== query.get(each.name),
  );
  control?.dispatchEvent(new Event(control.type === "search" ? "input" : "change", { bubbles: true }));
}

// Whether the page shows already what the form asks for; which page of it is no matter.
function isShown(form) {
  const shown = [...new URLSearchParams(location.search)].filter(([name]) => name !== "page");
  const asked = [...new FormData(form)].filter(
    ([name, value]) => value && value !== form.elements[name].dataset?.default,
  );
  return String(new URLSearchParams(asked.sort())) === String(new URLSearchParams(shown.sort()));
}

// Keeps the filter form equal to the URL after a chip, a sort link or the back button changed it.
export function mount(form) {
  function follow() {
    const query = new URLSearchParams(location.search);
    for (const control of form.elements) {
      if (!control.name || control === document.activeElement) continue;
      const value = query.get(control.name) ?? control.dataset.default ?? "";
      if (control.value !== value) control.value = value;
    }
    count();
    const clear = document.getElementById("filters-clear");
    if (clear) clear.hidden = ![...form.elements].some((each) => each.value && each.dataset.default === undefined);
  }
  // Says how many of the filters that are folded away are set.
  function count() {
    const said = form.querySelector("[data-part=set]");
    if (!said) return;
    const set = [...form.querySelectorAll(".filters-more :is(input, select)")].filter((each) => each.value).length;
    said.hidden = !set;
    said.textContent = `${set} set`;
  }
  function quit(event) {
    // The browser would empty the field: Esc leaves it, and what is found can be walked with j and k.
    if (event.key === "Escape" && event.target.type === "search") event.preventDefault();
  }
  // Text is asked for a moment after the last key, and again when its field is left. When a click leaves it, the answer to
  // that could come behind the answer to the click and undo it.
  function once(event) {
    const { sourceElement, sourceEvent } = event.detail.ctx;
    if (sourceElement === form && sourceEvent.type !== "submit" && isShown(form)) event.preventDefault();
  }
  form.addEventListener("htmx:before:request", once);
  early(form);
  form.addEventListener("keydown", quit);
  document.addEventListener("htmx:after:history:update", follow);
  return () => {
    form.removeEventListener("htmx:before:request", once);
    form.removeEventListener("keydown", quit);
    document.removeEventListener("htmx:after:history:update", follow);
  };
}
