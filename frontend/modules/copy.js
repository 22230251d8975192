// A button that copies the text of the element named by data-copies. Without scripts it may stay hidden.
export function mount(button) {
  const said = button.querySelector("[data-says]");
  const usual = said?.textContent ?? "";
  let timer = 0;
  button.hidden = false;
  async function copy() {
    const source = document.getElementById(button.dataset.copies);
    try {
      await navigator.clipboard.writeText(source.textContent);
      if (said) said.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(source);
      if (said) said.textContent = "Selected; press Ctrl+C";
    }
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (said) said.textContent = usual;
    }, 2500);
  }
  button.addEventListener("click", copy);
  return () => {
    clearTimeout(timer);
    button.removeEventListener("click", copy);
  };
}
