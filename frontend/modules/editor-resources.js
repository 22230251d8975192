// What a container asks for, and the most that it may take: a line for each resource.
import { fill, place } from "./editor-field.js";
import { pathText } from "./editor-node.js";
import * as yaml from "./editor-write.js";

const LISTS = [
  ["requests", "request"],
  ["limits", "limit"],
];

// Returns show(path, resources): the path of the container's resources, and each as editor-pod.js reads it.
export function resourceTable(holder, template, page) {
  const body = holder.querySelector("[data-part=resources]");
  const edit = (change) => page.write(change(page.text()));
  let base = [];
  holder.querySelector("[data-do=add-resource]").addEventListener("click", addRow);

  function show(path, resources) {
    base = path;
    const names = new Set(resources.map((each) => each.name));
    for (const line of [...body.children]) {
      if (line.dataset.name && !names.has(line.dataset.name)) line.remove();
    }
    for (const each of resources) {
      const line = [...body.children].find((one) => one.dataset.name === each.name) ?? row(each.name);
      const [request, limit] = line.querySelectorAll("td input");
      place(request, each.request.path);
      place(limit, each.limit.path);
      fill(request, each.request);
      fill(limit, each.limit);
    }
    holder.querySelector("[data-part=resources-error]").dataset.path = pathText(path);
  }

  function row(name) {
    const line = template("resource");
    line.dataset.name = name;
    line.querySelector("th").textContent = name;
    line.querySelectorAll("input").forEach((input, index) => {
      const [list, word] = LISTS[index];
      input.setAttribute("aria-label", `${name} ${word}`);
      input.placeholder = "none";
      input.addEventListener("input", () => edit((text) => yaml.write(text, [...base, list, name], input.value)));
    });
    body.append(line);
    return line;
  }

  // A row whose name is still to be typed; it becomes part of the YAML with its first amount.
  function addRow() {
    const line = template("resource");
    const name = document.createElement("input");
    Object.assign(name, { className: "input", placeholder: "nvidia.com/gpu", autocomplete: "off" });
    name.setAttribute("list", "resource-names");
    name.setAttribute("aria-label", "Name of the resource");
    line.querySelector("th").append(name);
    const [request, limit] = line.querySelectorAll("td input");
    const take = (list, input) => {
      if (!name.value.trim() || !input.value) return;
      line.remove();
      edit((text) => yaml.write(text, [...base, list, name.value.trim()], input.value));
    };
    request.setAttribute("aria-label", "Request");
    limit.setAttribute("aria-label", "Limit");
    request.addEventListener("change", () => take("requests", request));
    limit.addEventListener("change", () => take("limits", limit));
    name.addEventListener("change", () => take("requests", request));
    body.append(line);
    name.focus();
  }

  return { show };
}
