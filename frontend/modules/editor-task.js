// One task of the form: its plain fields, its pod, what it waits for, and its policies.
import { podForm } from "./editor-containers.js";
import { fill, place } from "./editor-field.js";
import { orderList } from "./editor-order.js";
import { policyList } from "./editor-policies.js";
import { removeTask, renameTask, resizeTask } from "./editor-tasks.js";
import { write } from "./editor-write.js";

const PLAIN = [
  "name",
  "replicas",
  "minAvailable",
  "maxRetry",
  "restartPolicy",
  "simulated",
  "seconds",
  "totalPartitions",
  "partitionSize",
  "minPartitions",
  "partitionMode",
  "partitionTierAllowed",
  "partitionTierName",
];
const CHANGES = { name: renameTask, replicas: resizeTask };

// Returns the element of a task with show(task, index, names) and focus(); names are those of all tasks. page offers text() and write(text).
export function taskForm(element, template, page) {
  const part = (name) => element.querySelector(`[data-part="${name}"]`);
  const edit = (change) => page.write(change(page.text()));
  let task = null;

  for (const name of PLAIN) {
    const input = part(name);
    const change = CHANGES[name] ?? ((text, _, typed) => write(text, task[name].path, typed));
    input.addEventListener("input", () => edit((text) => change(text, task, input.value)));
  }
  element.querySelector("[data-do=remove-task]").addEventListener("click", () => {
    const panel = element.closest("[data-part=form]");
    edit((text) => removeTask(text, task));
    panel.querySelector("[data-do=add-task]").focus();
  });
  const pod = podForm(part("pod"), part("volumes"), template, page);
  const policies = policyList(part("policies"), template, page, "task");
  const order = orderList(part("order"), template, page);

  function show(next, index, names) {
    task = next;
    part("number").textContent = task.name.text || String(index + 1);
    for (const name of PLAIN) {
      place(part(name), task[name].path);
      fill(part(name), task[name]);
    }
    part("seconds").closest(".field").hidden = task.simulated.text !== "true" && task.seconds.text === "";
    pod.show(task.pod);
    policies.show(task.policies);
    order.show(
      task.dependsOn,
      names.filter((name, other) => other !== index && name),
    );
    element.querySelector("[data-do=remove-task]").disabled = names.length === 1;
  }

  return { element, show, focus: () => part("name").focus() };
}
