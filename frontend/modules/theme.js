// Switches the theme at once; the cookie lets the server write it into the next page, so that nothing flashes.
const YEAR = 31536000;

export function mount(form) {
  function choose(event) {
    const theme = event.submitter?.value ?? "";
    event.preventDefault();
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    // biome-ignore lint/suspicious/noDocumentCookie: the Cookie Store API is missing in Firefox and Safari.
    document.cookie = `theme=${theme}; path=/; max-age=${theme ? YEAR : 0}; samesite=lax`;
    for (const button of form.querySelectorAll("button[name=theme]")) {
      button.setAttribute("aria-pressed", String(button.value === theme));
    }
  }
  form.addEventListener("submit", choose);
  return () => form.removeEventListener("submit", choose);
}
