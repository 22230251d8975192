// Counts the ticked rows of a table, ticks all of its page, and chooses "ticked" as soon as somebody ticks.
export function mount(form) {
  const part = (name) => form.querySelector(`[data-part=${name}]`);
  const boxes = () => [...document.querySelectorAll(`input[type=checkbox][form="${form.id}"]`)];

  function show() {
    part("count").textContent = boxes().filter((box) => box.checked).length;
  }

  function ticked(event) {
    if (event.target.getAttribute("form") !== form.id) return;
    form.elements.which.value = "ticked";
    show();
  }

  function page() {
    const all = boxes();
    const wish = all.some((box) => !box.checked);
    for (const box of all) box.checked = wish;
    form.elements.which.value = "ticked";
    show();
  }

  part("page").disabled = false;
  part("page").addEventListener("click", page);
  document.addEventListener("change", ticked);
  document.addEventListener("live:changed", show);
  show();
  return () => {
    document.removeEventListener("change", ticked);
    document.removeEventListener("live:changed", show);
  };
}
