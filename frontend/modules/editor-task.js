// One task of the form: its plain fields, its command in two spellings, its variables and its resources.
import { fill, grow, place, why } from "./editor-field.js";
import { pathText } from "./editor-node.js";
import { orderList } from "./editor-order.js";
import { policyList } from "./editor-policies.js";
import { wordList } from "./editor-words.js";
import * as yaml from "./editor-write.js";

const PLAIN = [
  "name",
  "replicas",
  "minAvailable",
  "maxRetry",
  "image",
  "workingDir",
  "restartPolicy",
  "simulated",
  "seconds",
];
const CONTAINER = ["template", "spec", "containers", 0];

// Returns the element of a task with show(task, index, names) and focus(); names are those of all tasks. page offers text() and write(text).
export function taskForm(element, template, page) {
  const part = (name) => element.querySelector(`[data-part="${name}"]`);
  const on = (name, act) => element.querySelector(`[data-do="${name}"]`).addEventListener("click", () => act());
  let task = null;
  let spelling = ""; // what the reader chose; empty means as the YAML is written
  const base = () => [...task.path, ...CONTAINER];
  const edit = (change) => page.write(change(page.text()));

  for (const name of PLAIN) {
    part(name).addEventListener("input", () => edit((text) => yaml.write(text, task[name].path, part(name).value)));
  }
  part("line").addEventListener("input", () => {
    grow(part("line"), 2);
    edit((text) => yaml.writeLine(text, base(), part("line").value));
  });
  on("shell", () => choose("shell"));
  on("words", () => choose("words"));
  on("to-shell", () => {
    spelling = "";
    edit((text) =>
      yaml.writeLine(text, base(), yaml.shellLine([...task.command.command.words, ...task.command.args.words])),
    );
  });
  on("remove-task", () => edit((text) => yaml.removeItem(text, task.path)));
  on("add-env", () => {
    const names = new Set(task.env.rows.map((row) => row.name.text));
    let number = task.env.rows.length + 1;
    while (names.has(`NAME_${number}`)) number += 1;
    edit((text) => yaml.addEnv(text, base(), `NAME_${number}`, ""));
    part("env").lastElementChild?.querySelector("input").select();
  });
  on("add-resource", addResource);
  const policies = policyList(part("policies"), template, page, "task");
  const order = orderList(part("order"), template, page);
  const lists = [...element.querySelectorAll("[data-part=words]")].map((list) => {
    const words = () => task.command[list.dataset.list];
    const rows = wordList(list.querySelector(".words"), template, (now) =>
      edit((text) => yaml.writeWords(text, words().path, now)),
    );
    const add = list.querySelector("[data-do=add-word]");
    add.addEventListener("click", () => rows.add());
    return () => {
      rows.show(words().words, words().path, list.dataset.list === "args" ? "Argument" : "Word");
      add.disabled = words().state === "foreign";
    };
  });

  function choose(next) {
    spelling = next;
    showCommand();
  }

  function showCommand() {
    const { command, args, mode, line } = task.command;
    const chosen = spelling || mode;
    for (const name of ["shell", "words"]) {
      element.querySelector(`[data-do="${name}"]`).setAttribute("aria-pressed", String(chosen === name));
    }
    part("shell").hidden = chosen !== "shell";
    part("lists").hidden = chosen !== "words";
    const area = part("line");
    const isOther = chosen === "shell" && mode === "words";
    const text = isOther ? yaml.shellLine([...command.words, ...args.words]) : line;
    if (area !== document.activeElement && area.value !== text) area.value = text;
    grow(area, 2);
    area.readOnly = isOther;
    const foreign = [command, args].find((each) => each.state === "foreign");
    element.querySelector("[data-do=to-shell]").hidden = !isOther || Boolean(foreign);
    for (const showWords of lists) showWords();
    place(part("command"), command.path);
    why(part("command").querySelector(":scope > [data-why]"), foreign?.why ?? "");
  }

  function showEnv() {
    const { rows, state, why: reason, path } = task.env;
    const holder = part("env");
    while (holder.children.length > rows.length) holder.lastElementChild.remove();
    while (holder.children.length < rows.length) holder.append(variable(holder.children.length));
    rows.forEach((row, index) => {
      const [name, value] = holder.children[index].querySelectorAll("input");
      place(name, row.name.path);
      place(value, row.value.path);
      fill(name, row.name);
      fill(value, row.value);
    });
    why(part("env-why"), state === "foreign" ? reason : "");
    part("env-error").dataset.path = pathText(path);
    element.querySelector("[data-do=add-env]").disabled = state === "foreign";
  }

  function variable(index) {
    const row = template("env");
    const [name, value] = row.querySelectorAll("input");
    name.addEventListener("input", () =>
      edit((text) => yaml.write(text, task.env.rows[index].name.path, name.value, { stays: true })),
    );
    value.addEventListener("input", () =>
      edit((text) => yaml.write(text, task.env.rows[index].value.path, value.value)),
    );
    row
      .querySelector("[data-do=remove-env]")
      .addEventListener("click", () => edit((text) => yaml.removeItem(text, task.env.rows[index].path)));
    return row;
  }

  function showResources() {
    const body = part("resources");
    const names = new Set(task.resources.map((each) => each.name));
    for (const row of [...body.children]) {
      if (row.dataset.name && !names.has(row.dataset.name)) row.remove();
    }
    for (const each of task.resources) {
      const row = [...body.children].find((one) => one.dataset.name === each.name) ?? resource(body, each.name);
      const [request, limit] = row.querySelectorAll("td input");
      place(request, each.request.path);
      place(limit, each.limit.path);
      fill(request, each.request);
      fill(limit, each.limit);
    }
    part("resources-error").dataset.path = pathText([...base(), "resources"]);
  }

  function resource(body, name) {
    const row = template("resource");
    row.dataset.name = name;
    row.querySelector("th").textContent = name;
    const [request, limit] = row.querySelectorAll("input");
    for (const [input, list] of [
      [request, "requests"],
      [limit, "limits"],
    ]) {
      input.setAttribute("aria-label", `${name} ${list === "requests" ? "request" : "limit"}`);
      input.placeholder = "none";
      input.addEventListener("input", () =>
        edit((text) => yaml.write(text, [...base(), "resources", list, name], input.value)),
      );
    }
    body.append(row);
    return row;
  }

  // A row whose name is still to be typed; it becomes part of the YAML with its first amount.
  function addResource() {
    const row = template("resource");
    const name = document.createElement("input");
    Object.assign(name, { className: "input", placeholder: "nvidia.com/gpu", autocomplete: "off" });
    name.setAttribute("list", "resource-names");
    name.setAttribute("aria-label", "Name of the resource");
    row.querySelector("th").append(name);
    const [, request, limit] = [name, ...row.querySelectorAll("td input")];
    const take = (list, input) => {
      if (!name.value.trim() || !input.value) return;
      row.remove();
      edit((text) => yaml.write(text, [...base(), "resources", list, name.value.trim()], input.value));
    };
    request.setAttribute("aria-label", "Request");
    limit.setAttribute("aria-label", "Limit");
    request.addEventListener("change", () => take("requests", request));
    limit.addEventListener("change", () => take("limits", limit));
    name.addEventListener("change", () => take("requests", request));
    part("resources").append(row);
    name.focus();
  }

  function show(next, index, names) {
    task = next;
    part("number").textContent = task.name.text || String(index + 1);
    for (const name of PLAIN) {
      place(part(name), task[name].path);
      fill(part(name), task[name]);
    }
    part("seconds").closest(".field").hidden = task.simulated.text !== "true" && task.seconds.text === "";
    showCommand();
    showEnv();
    showResources();
    policies.show(task.policies);
    order.show(
      task.dependsOn,
      names.filter((name, other) => other !== index && name),
    );
    element.querySelector("[data-do=remove-task]").disabled = names.length === 1;
    const more = `This task has ${task.others} more container${task.others === 1 ? "" : "s"}, which only the YAML shows.`;
    why(part("others"), task.others ? more : "");
  }

  return { element, show, focus: () => part("name").focus() };
}
