// The values that hold where the YAML leaves a field out: the check tells them, as the server fills them in.
import { why } from "./editor-field.js";

// Shows what holds at a field of the form; held is undefined where what is written holds, and where nothing does.
export function hold(input, held) {
  if (input.tagName === "SELECT") holdChoice(input, held);
  else {
    input.dataset.hint ??= input.placeholder;
    input.placeholder = held ?? input.dataset.hint;
  }
  const hint = input.closest(".entry, .field")?.querySelector(":scope > [data-why]");
  if (hint && !input.readOnly && !input.disabled)
    why(hint, held !== undefined && input.value !== "" ? `Counts as ${held}.` : "");
}

function holdChoice(select, held) {
  const none = [...select.options].find((option) => option.value === "");
  if (!none) return;
  none.dataset.hint ??= none.textContent;
  const chosen = [...select.options].find((option) => option.value === held && held);
  none.textContent = chosen ? `${chosen.textContent} (default)` : none.dataset.hint;
}
