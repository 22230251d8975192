// A list of rows: variables, ports, mounts, volumes. Each input of a row shows and writes one field of it.
import { fill, place, why } from "./editor-field.js";
import { pathText } from "./editor-node.js";
import { removeItem, write } from "./editor-write.js";

const SHOWS = "input, select";

// Returns show(found), found as editor-pod.js reads a list.
//
// holder has the rows, their button, and what is said of them; make() returns a new row, whose inputs
// name their fields by data-field. add(text, found) returns the text with one more row. Optional are
// remove(text, row); change, functions (text, row, typed) of fields that are not just written; stays,
// fields that are kept when nothing is in them; and draw(element, row), for what depends on a row.
export function rowList(holder, make, page, { add, remove, change = {}, stays = [], draw }) {
  const part = (name) => holder.querySelector(`[data-part="${name}"]`);
  const edit = (next) => page.write(next(page.text()));
  const button = holder.querySelector("[data-do=add-row]");
  const rows = part("rows");
  let found = null;

  button.addEventListener("click", () => {
    edit((text) => add(text, found));
    const first = rows.lastElementChild?.querySelector(SHOWS);
    first?.focus();
    if (first?.tagName === "INPUT") first.select();
  });

  function row(index) {
    const element = make();
    for (const input of element.querySelectorAll("[data-field]")) {
      input.addEventListener("input", () => edit((text) => written(text, found.rows[index], input)));
    }
    element.querySelector("[data-do=remove-row]").addEventListener("click", () => {
      const before = element.previousElementSibling;
      const gone = found.rows[index];
      edit((text) => (remove ? remove(text, gone) : removeItem(text, gone.path)));
      (before?.querySelector(SHOWS) ?? button).focus();
    });
    return element;
  }

  function written(text, of, input) {
    const name = input.dataset.field;
    const typed = input.type === "checkbox" ? (input.checked ? "true" : "") : input.value;
    if (change[name]) return change[name](text, of, typed);
    return write(text, of.fields[name].path, typed, { stays: stays.includes(name) });
  }

  function showRow(element, each) {
    draw?.(element, each);
    for (const input of element.querySelectorAll("[data-field]")) {
      const field = each.fields[input.dataset.field];
      if (!field) delete input.dataset.path;
      else {
        place(input, field.path);
        fill(input, field);
      }
    }
    // Inputs that stand in one line share the place for what is said of them.
    const shared = element.querySelector(":scope > [data-why]");
    if (shared) why(shared, Object.values(each.fields).find((field) => field.state === "foreign")?.why ?? "");
  }

  function show(next) {
    found = next;
    while (rows.children.length > found.rows.length) rows.lastElementChild.remove();
    while (rows.children.length < found.rows.length) rows.append(row(rows.children.length));
    for (const [index, each] of found.rows.entries()) {
      const element = rows.children[index];
      if (element.dataset.label) element.setAttribute("aria-label", `${element.dataset.label} ${index + 1}`);
      showRow(element, each);
    }
    button.disabled = found.state === "foreign";
    part("rows-error").dataset.path = pathText(found.path);
    why(part("rows-why"), found.state === "foreign" ? found.why : "");
  }

  return { show };
}
