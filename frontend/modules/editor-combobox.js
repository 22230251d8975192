// A field whose values are known: a list of them below it, from which one is chosen or past which one types.
// The pattern is the combobox of the ARIA Authoring Practices Guide, with a list that filters.

// Returns offer(choices), choices as jobs.pages.editor.choices tells them, and show(), which tells what is known of the value.
export function combobox(input) {
  const description = input.closest(".field").querySelector("[data-part=description]");
  const list = document.createElement("ul");
  list.id = `${input.id}-options`;
  list.className = "options";
  list.hidden = true;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", input.labels[0].textContent);
  input.after(list);
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-autocomplete", "list");
  input.setAttribute("aria-controls", list.id);
  description.id = `${input.id}-description`;
  input.setAttribute("aria-describedby", `${description.id} ${input.getAttribute("aria-describedby") ?? ""}`);
  let choices = [];
  let active = -1;
  const KEYS = {
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Enter: () => (active < 0 ? close() : choose(list.children[active])),
    Escape: close,
  };

  close();

  input.addEventListener("click", () => open());
  // What choose() says was chosen is no typing.
  input.addEventListener("input", (event) => event.isTrusted && open(input.value));
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || (list.hidden && !event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  });
  // The field keeps the focus.
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", (event) => choose(event.target.closest("[role=option]")));

  function open(typed = "") {
    if (input.readOnly) return;
    const wanted = typed.toLowerCase();
    const found = choices.filter(({ value, description: words }) => `${value} ${words}`.toLowerCase().includes(wanted));
    list.replaceChildren(...found.map(option));
    active = -1;
    input.removeAttribute("aria-activedescendant");
    list.hidden = found.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
  }

  function close() {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function option({ value, description: words, refusal }, index) {
    const item = document.createElement("li");
    item.id = `${list.id}-${index}`;
    item.dataset.value = value;
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", String(value === input.value));
    const name = document.createElement("b");
    name.textContent = value;
    const rest = document.createElement("span");
    rest.className = "small soft";
    rest.textContent = [refusal, words].filter(Boolean).join(" · ");
    item.append(name, " ", rest);
    if (refusal) item.setAttribute("aria-disabled", "true");
    return item;
  }

  function move(by) {
    if (list.hidden) open();
    const { length } = list.children;
    if (length === 0) return;
    list.children[active]?.removeAttribute("data-active");
    active = active < 0 && by < 0 ? length - 1 : (active + by + length) % length;
    const item = list.children[active];
    item.dataset.active = "";
    item.scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", item.id);
  }

  function choose(item) {
    if (!item || item.getAttribute("aria-disabled")) return;
    input.value = item.dataset.value;
    close();
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function offer(next) {
    choices = next;
    show();
  }

  function show() {
    const found = choices.find(({ value }) => value === (input.value || input.placeholder));
    const text = [found?.refusal, found?.description].filter(Boolean).join(" · ");
    description.hidden = text === "";
    if (description.textContent !== text) description.textContent = text;
  }

  return { offer, show };
}
