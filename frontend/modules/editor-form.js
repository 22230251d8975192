// The form side of the job editor: shows what editor-model.js reads, and turns each change into a new text.

import { fill, place, why } from "./editor-field.js";
import { taskForm } from "./editor-task.js";
import * as yaml from "./editor-write.js";

// page offers text(), the YAML at present, and write(text). Returns show(view) and blame(causes).
export function form(panel, root, page) {
  const tasks = panel.querySelector("[data-part=tasks]");
  const template = (name) =>
    root.querySelector(`template[data-template="${name}"]`).content.firstElementChild.cloneNode(true);
  const fields = new Map(); // name in the view -> input
  const shown = [];
  let view = { ok: false, tasks: [] };

  for (const input of panel.querySelectorAll("input[data-path]")) {
    const path = input.dataset.path.split(".");
    fields.set(path.at(-1), input);
    place(input, path);
    input.addEventListener("input", () => page.write(yaml.write(page.text(), path, input.value)));
  }
  panel.querySelector("[data-do=add-task]").addEventListener("click", () => {
    page.write(yaml.addTask(page.text()));
    shown.at(-1)?.focus();
  });

  function show(next) {
    view = next;
    const broken = panel.querySelector("[data-part=broken]");
    broken.hidden = view.ok;
    panel.querySelector("[data-part=fields]").disabled = !view.ok;
    if (!view.ok) {
      panel.querySelector("[data-part=broken-why]").textContent =
        `${view.why} The form shows the last that could be read, and works again when this is mended.`;
      return;
    }
    for (const [name, input] of fields) fill(input, view.job[name]);
    panel.querySelector("[data-do=add-task]").disabled = Boolean(view.tasksWhy);
    while (shown.length > view.tasks.length) shown.pop().element.remove();
    view.tasks.forEach((task, index) => {
      if (!shown[index]) {
        shown[index] = taskForm(template("task"), template, page);
        tasks.append(shown[index].element);
      }
      shown[index].show(task, index, view.tasks.length);
    });
    why(panel.querySelector("[data-path='spec.tasks'][data-error]"), view.tasksWhy ?? "");
  }

  // Shows each cause at its field, or at the nearest field around it.
  function blame(causes) {
    const inputs = new Map();
    for (const input of panel.querySelectorAll("[data-path]")) {
      inputs.set(normal(input.dataset.path), input);
      clear(input);
    }
    for (const { field, message } of causes) {
      let path = normal(field);
      while (path && !inputs.has(path)) path = path.slice(0, Math.max(path.lastIndexOf("."), 0));
      if (path && path !== "spec") tell(inputs.get(path), message);
    }
  }

  return { show, blame };
}

// Writes spec.tasks[0].requests[cpu], and the older taskSpecs, as one spelling in which a dot leads to every part.
function normal(path) {
  return path
    .replaceAll("[", ".")
    .replaceAll("]", "")
    .replace(/^spec\.taskSpecs/, "spec.tasks");
}

function errorOf(input) {
  if (input.hasAttribute("data-error")) return input;
  const cell = input.closest("td, .env-row, .word");
  const holder = cell ? cell.closest(".field") : input.closest(".field");
  return holder?.querySelector(":scope > [data-error]") ?? null;
}

function clear(input) {
  input.removeAttribute("aria-invalid");
  const error = errorOf(input);
  if (error && error !== input) why(error, "");
}

function tell(input, message) {
  if (input.matches("input, select, textarea")) input.setAttribute("aria-invalid", "true");
  const error = errorOf(input);
  if (!error) return;
  const said = error.hidden || error.textContent === message ? message : `${error.textContent} ${message}`;
  why(error, said);
}
