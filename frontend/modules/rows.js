// A click anywhere in a row opens the row's first link; marks the row so that the pointer shows it.
export function mount(table) {
  function open(event) {
    if (event.target.closest("a, button, input, label, select, summary, time") || getSelection()?.toString()) return;
    const link = event.target.closest("tbody tr")?.querySelector("a[href]");
    if (!link) return;
    if (event.ctrlKey || event.metaKey) window.open(link.href, "_blank", "noopener");
    else link.click();
  }
  table.addEventListener("click", open);
  return () => table.removeEventListener("click", open);
}
