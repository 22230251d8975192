// The form side of the job editor: shows what editor-model.js reads, and turns each change into a new text.

import { combobox } from "./editor-combobox.js";
import { fill, place, why } from "./editor-field.js";
import { inWords, useAll } from "./editor-gang.js";
import { orderGraph } from "./editor-graph.js";
import { hold as holdAt } from "./editor-held.js";
import { jobVolumes } from "./editor-job-volumes.js";
import { pluginList } from "./editor-plugins.js";
import { policyList } from "./editor-policies.js";
import { taskForm } from "./editor-task.js";
import { addTask } from "./editor-tasks.js";
import { write } from "./editor-write.js";

// page offers text(), the YAML at present, and write(text). Returns show(view), blame(causes, warnings), hold(held) and offer(choices).
export function form(panel, root, page) {
  const tasks = panel.querySelector("[data-part=tasks]");
  const template = (name) =>
    root.querySelector(`template[data-template="${name}"]`).content.firstElementChild.cloneNode(true);
  const policies = policyList(panel.querySelector("[data-part=policies]"), template, page, "job");
  const plugins = pluginList(panel.querySelector("[data-part=plugins]"), template, page);
  const volumes = jobVolumes(panel.querySelector("[data-part=job-volumes]"), template, page);
  const order = orderGraph(panel.querySelector("[data-part=order-graph]"));
  const fields = new Map(); // name in the view -> input
  const shown = [];
  let view = { ok: false, tasks: [] };

  for (const input of panel.querySelectorAll(":is(input, select)[data-path]")) {
    const path = input.dataset.path.split(".");
    fields.set(path.at(-1), input);
    place(input, path);
    input.addEventListener("input", () => page.write(write(page.text(), path, input.value)));
  }
  const comboboxes = [...panel.querySelectorAll("[data-offers]")].map((input) => [input.dataset.path, combobox(input)]);
  panel.querySelector("[data-do=add-task]").addEventListener("click", () => {
    page.write(addTask(page.text()));
    shown.at(-1)?.focus();
  });
  panel.querySelector("[data-do=use-all]").addEventListener("click", () => {
    page.write(useAll(page.text()));
    fields.get("minAvailable").focus();
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
    for (const [, box] of comboboxes) box.show();
    showGang();
    policies.show(view.policies);
    plugins.show(view.plugins);
    volumes.show(view.volumes);
    order.show(view.tasks);
    panel.querySelector("[data-do=add-task]").disabled = Boolean(view.tasksWhy);
    while (shown.length > view.tasks.length) shown.pop().element.remove();
    const names = view.tasks.map((task) => task.name.text);
    view.tasks.forEach((task, index) => {
      if (!shown[index]) {
        shown[index] = taskForm(template("task"), template, page);
        tasks.append(shown[index].element);
      }
      shown[index].show(task, index, names);
    });
    why(panel.querySelector("[data-path='spec.tasks'][data-error]"), view.tasksWhy ?? "");
  }

  function showGang() {
    const { text, mayUseAll } = inWords(view);
    why(panel.querySelector("[data-part=gang]"), text);
    panel.querySelector("[data-do=use-all]").hidden = !mayUseAll;
  }

  // Shows each cause and each warning at its field, or at the nearest field around it.
  function blame(causes, warnings) {
    const inputs = new Map();
    for (const input of panel.querySelectorAll("[data-path]")) {
      inputs.set(normal(input.dataset.path), input);
      clear(input);
    }
    for (const { field, message } of causes) tell(nearest(inputs, field), message, "error");
    for (const { field, message } of warnings) tell(nearest(inputs, field), message, "warning");
  }

  // Shows the values that hold where the YAML has none, by path.
  function hold(held) {
    const known = new Map(Object.entries(held).map(([path, value]) => [normal(path), value]));
    for (const input of panel.querySelectorAll(":is(input, select)[data-path]"))
      holdAt(input, known.get(normal(input.dataset.path)));
    for (const [, box] of comboboxes) box.show();
  }

  // Hears what may be chosen, by the paths of fields.
  function offer(choices) {
    for (const [path, box] of comboboxes) box.offer(choices[path]);
  }

  return { show, blame, hold, offer };
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
  const cell = input.closest("td, .entry, .word");
  const holder = cell ? cell.closest(".field") : input.closest(".field");
  return holder?.querySelector(":scope > [data-error]") ?? null;
}

function nearest(inputs, field) {
  let path = normal(field);
  while (path && !inputs.has(path)) path = path.slice(0, Math.max(path.lastIndexOf("."), 0));
  return path && path !== "spec" ? inputs.get(path) : null;
}

function clear(input) {
  input.removeAttribute("aria-invalid");
  const error = errorOf(input);
  if (error && error !== input) why(error, "");
}

// Opens what hides an element.
function open(element) {
  for (let box = element.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
}

// What is wrong stands before what is merely odd, and colours all that is said at the field.
function tell(input, message, kind) {
  if (!input) return;
  if (kind === "error" && input.matches("input, select, textarea")) input.setAttribute("aria-invalid", "true");
  const error = errorOf(input);
  if (!error) return;
  if (kind === "error") open(error);
  if (error.hidden) error.dataset.kind = kind;
  const said = error.hidden || error.textContent === message ? message : `${error.textContent} ${message}`;
  why(error, said);
}
