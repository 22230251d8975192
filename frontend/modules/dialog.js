// A button that opens the <dialog> named by data-opens; the dialog closes by its own buttons, Esc or a click outside.
export function mount(button) {
  const dialog = document.getElementById(button.dataset.opens);
  if (!dialog) return undefined;
  const open = (event) => {
    event.preventDefault();
    dialog.showModal();
  };
  const outside = (event) => {
    if (event.target === dialog || event.target.closest("[data-closes]")) dialog.close();
  };
  button.addEventListener("click", open);
  dialog.addEventListener("click", outside);
  return () => {
    button.removeEventListener("click", open);
    dialog.removeEventListener("click", outside);
  };
}
