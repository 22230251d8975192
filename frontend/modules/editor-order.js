// Which tasks a task waits for: a choice for each other task, and whether one of them is enough.
import { fill, place, why } from "./editor-field.js";
import { pathText } from "./editor-node.js";
import * as yaml from "./editor-write.js";

// Returns show(dependsOn, others), where others are the names of the other tasks.
export function orderList(holder, template, page) {
  const part = (name) => holder.querySelector(`[data-part="${name}"]`);
  const edit = (change) => page.write(change(page.text()));
  let wanted = null;

  part("iteration").addEventListener("input", () =>
    edit((text) => yaml.write(text, wanted.iteration.path, part("iteration").value)),
  );

  function choice() {
    const made = template("other-task");
    const box = made.querySelector("input");
    box.addEventListener("input", () => {
      const { words } = wanted.names;
      const name = box.value;
      const now = box.checked ? [...words, name] : words.filter((each) => each !== name);
      edit((text) => yaml.writeDependencies(text, wanted.path, now));
    });
    return made;
  }

  function show(dependsOn, others) {
    wanted = dependsOn;
    const { words, state, why: reason } = wanted.names;
    // Names of tasks that there are not stay visible, so that they can be taken away.
    const names = [...new Set([...others, ...words])];
    const list = part("other-tasks");
    while (list.children.length > names.length) list.lastElementChild.remove();
    while (list.children.length < names.length) list.append(choice());
    names.forEach((name, index) => {
      const box = list.children[index].querySelector("input");
      box.value = name;
      box.checked = words.includes(name);
      box.disabled = state === "foreign";
      list.children[index].querySelector("[data-part=other-name]").textContent = name;
    });
    holder.hidden = names.length === 0 && state !== "foreign";
    part("iteration-field").hidden = words.length < 2;
    place(part("iteration"), wanted.iteration.path);
    fill(part("iteration"), wanted.iteration);
    part("order-error").dataset.path = pathText(wanted.path);
    why(part("order-why"), state === "foreign" ? reason : "");
  }

  return { show };
}
