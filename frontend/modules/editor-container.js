// One container of a task: its command and resources, and behind "more" the rest that the form writes.
import { commandField } from "./editor-command.js";
import { fill, place, why } from "./editor-field.js";
import { addMount, addPort, addVariable } from "./editor-parts.js";
import { resourceTable } from "./editor-resources.js";
import { rowList } from "./editor-rows.js";
import { removeItem, write } from "./editor-write.js";

const PLAIN = ["name", "image", "workingDir"];

// Returns the element of a container with show(container, shown) and focus(); shown is {title, isSole, volumes}.
export function containerForm(template, page) {
  const element = template("container");
  const part = (name) => element.querySelector(`[data-part="${name}"]`);
  const edit = (change) => page.write(change(page.text()));
  let container = null;
  let volumes = []; // the names of those that it may mount

  for (const name of PLAIN) {
    const input = part(`container-${name}`);
    input.addEventListener("input", () => edit((text) => write(text, container[name].path, input.value)));
  }
  element.querySelector("[data-do=remove-container]").addEventListener("click", () => {
    const holder = element.closest("[data-part=pod]");
    edit((text) => removeItem(text, container.path));
    holder.querySelector("[data-do=add-container]").focus();
  });
  const command = commandField(part("command"), template, page);
  const resources = resourceTable(part("resources-field"), template, page);
  const env = rowList(part("env"), () => template("variable"), page, { add: addVariable, stays: ["name"] });
  const ports = rowList(part("ports"), () => template("port"), page, { add: addPort });
  const mounts = rowList(part("mounts"), () => template("mount"), page, {
    add: (text, found) => addMount(text, found, volumes[0]),
    stays: ["name"],
    draw: offerVolumes,
  });

  function offerVolumes(row) {
    const select = row.querySelector("[data-field=name]");
    const offered = [...select.options].map((option) => option.value);
    if (offered.length === volumes.length && offered.every((name, index) => name === volumes[index])) return;
    select.replaceChildren(...volumes.map((name) => new Option(name, name)));
  }

  function show(next, { title, isSole, volumes: names }) {
    container = next;
    volumes = names;
    part("title").textContent = title;
    part("title").classList.toggle("unseen", isSole);
    element.toggleAttribute("data-sole", isSole);
    element.querySelector("[data-do=remove-container]").hidden = isSole;
    for (const name of PLAIN) {
      place(part(`container-${name}`), container[name].path);
      fill(part(`container-${name}`), container[name]);
    }
    command.show(container.path, container.command);
    resources.show([...container.path, "resources"], container.resources);
    env.show(container.env);
    ports.show(container.ports);
    mounts.show(container.mounts);
    const canMount = volumes.length > 0;
    part("mounts").querySelector("[data-do=add-row]").hidden = !canMount;
    why(part("no-volumes"), canMount ? "" : "This task has no volume to mount yet; add one below.");
  }

  return {
    element,
    show,
    focus: () => {
      part("more").open = true;
      part("container-name").select();
    },
  };
}
