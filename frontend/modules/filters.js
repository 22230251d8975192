// The value that a control came with.
function delivered(control) {
  if (control.tagName !== "SELECT") return control.defaultValue;
  return ([...control.options].find((each) => each.defaultSelected) ?? control.options[0]).value;
}

// What was typed or chosen before htmx listened, which it does only a moment after the page has loaded.
function early(form) {
  globalThis.htmx.process(form);
  const query = new URLSearchParams(location.search);
  const control = [...form.elements].find(
    (each) => each.name && each.value !== delivered(each) && each.value !== query.get(each.name),
  );
  control?.dispatchEvent(new Event(control.type === "search" ? "input" : "change", { bubbles: true }));
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
    const clear = document.getElementById("filters-clear");
    if (clear) clear.hidden = ![...form.elements].some((each) => each.value && each.dataset.default === undefined);
  }
  function quit(event) {
    // The browser would empty the field: Esc leaves it, and what is found can be walked with j and k.
    if (event.key === "Escape" && event.target.type === "search") event.preventDefault();
  }
  early(form);
  form.addEventListener("keydown", quit);
  document.addEventListener("htmx:after:history:update", follow);
  return () => {
    form.removeEventListener("keydown", quit);
    document.removeEventListener("htmx:after:history:update", follow);
  };
}
