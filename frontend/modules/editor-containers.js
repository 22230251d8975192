// The pod of a task: its init containers, its containers, and the volumes that they mount.
import { containerForm } from "./editor-container.js";
import { why } from "./editor-field.js";
import { pathText } from "./editor-node.js";
import { addContainer, addVolume, changeVolume, removeVolume, renameVolume } from "./editor-parts.js";
import { rowList } from "./editor-rows.js";

const LISTS = ["initContainers", "containers"];
const KINDS = { initContainers: "Init container", containers: "Container" };
const LABELS = {
  configMap: "Name of the config map",
  secret: "Name of the secret",
  persistentVolumeClaim: "Name of the claim",
  hostPath: "Directory of the node",
};

// Returns show(pod), the pod as editor-pod.js reads it; volumes holds the rows of the volumes.
export function podForm(holder, volumesHolder, template, page) {
  const part = (name) => holder.querySelector(`[data-part="${name}"]`);
  const edit = (change) => page.write(change(page.text()));
  const shown = { initContainers: [], containers: [] };
  let pod = null;

  for (const [button, list] of [
    ["add-container", "containers"],
    ["add-init-container", "initContainers"],
  ]) {
    holder.querySelector(`[data-do=${button}]`).addEventListener("click", () => {
      edit((text) => addContainer(text, pod, list));
      shown[list].at(-1)?.focus();
    });
  }
  const volumes = rowList(volumesHolder, () => template("volume"), page, {
    add: (text) => addVolume(text, pod),
    remove: (text, row) => removeVolume(text, pod, row),
    change: {
      name: (text, row, typed) => renameVolume(text, pod, row, typed),
      kind: (text, row, kind) => changeVolume(text, row, kind),
    },
    stays: ["source"],
    draw: drawVolume,
  });

  function show(next) {
    pod = next;
    const names = pod.volumes.rows.map((row) => row.fields.name.text).filter(Boolean);
    const count = pod.containers.rows.length + pod.initContainers.rows.length;
    for (const list of LISTS) showList(list, { isSole: count === 1, volumes: names });
    volumes.show(pod.volumes);
    part("containers-error").dataset.path = pathText(pod.containers.path);
    part("init-containers-error").dataset.path = pathText(pod.initContainers.path);
    holder.querySelector("[data-do=add-container]").disabled = pod.containers.state === "foreign";
    holder.querySelector("[data-do=add-init-container]").disabled = pod.initContainers.state === "foreign";
    why(part("init-containers-why"), pod.initContainers.state === "foreign" ? pod.initContainers.why : "");
  }

  function showList(list, context) {
    const { rows } = pod[list];
    while (shown[list].length > rows.length) shown[list].pop().element.remove();
    rows.forEach((container, index) => {
      if (!shown[list][index]) {
        shown[list][index] = containerForm(template, page);
        part(list).append(shown[list][index].element);
      }
      const title = `${KINDS[list]} ${container.name.text || index + 1}`;
      shown[list][index].show(container, { title, ...context });
    });
  }

  return { show };
}

function drawVolume(element, { fields }) {
  const kind = fields.kind.state === "foreign" ? "" : fields.kind.text;
  const source = element.querySelector("[data-field=source]").closest(".field");
  source.hidden = !(kind in LABELS);
  source.querySelector("label").textContent = LABELS[kind] ?? "";
}
