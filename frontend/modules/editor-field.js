// One input of the form and the field of the job behind it.
import { pathText } from "./editor-node.js";

let count = 0;

// Ties an input to the field at path: its label, its error and its problems find it from now on.
export function place(input, path) {
  input.dataset.path = pathText(path);
  if (input.id) return;
  count += 1;
  input.id = `field-${count}`;
  const holder = input.closest(".field");
  const label = holder?.querySelector(":scope > label");
  if (label && !label.htmlFor) label.htmlFor = input.id;
  const error = holder?.querySelector(":scope > [data-error]");
  if (!error || error.id) return;
  error.id = `${input.id}-error`;
  input.setAttribute("aria-describedby", error.id);
}

// Shows a field of the view; what a person is typing in stays as it is.
export function fill(input, field) {
  const isForeign = field.state === "foreign";
  const isBox = input.type === "checkbox";
  if (isBox) input.checked = field.text === "true";
  else if (input !== document.activeElement && input.value !== field.text) setValue(input, field.text);
  if (isBox || input.tagName === "SELECT") input.disabled = isForeign;
  else input.readOnly = isForeign;
  const hint = input.closest(".entry, .field")?.querySelector(":scope > [data-why]");
  if (hint) why(hint, isForeign ? field.why : "");
}

function setValue(input, text) {
  if (input.tagName === "SELECT" && ![...input.options].some((option) => option.value === text)) {
    input.add(new Option(text, text));
  }
  input.value = text;
}

// Shows a sentence, or hides its place when there is none.
export function why(element, text) {
  element.hidden = text === "";
  if (element.textContent !== text) element.textContent = text;
}

// Makes a text area as high as its lines.
export function grow(area, least = 1) {
  area.rows = Math.min(Math.max(area.value.split("\n").length, least), 24);
}
