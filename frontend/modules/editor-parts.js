// Containers, ports, mounts and volumes that come into a job and go, as changes of its text.

import { mend } from "./editor-mend.js";
import { orderAt } from "./editor-places.js";
import { SOURCES } from "./editor-pod.js";
import { append, remove, set } from "./editor-text.js";
import { removeItem, write } from "./editor-write.js";

const FIRST_NAMES = { containers: "sidecar", initContainers: "init" };
const CLAIM = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };

// Returns a container that says hello; what it asks for is what the samples ask for.
export function newContainer(name) {
  return {
    name,
    image: "busybox",
    command: ["sh", "-c", "echo hello"],
    resources: { requests: { cpu: "100m", memory: "64Mi" } },
  };
}

// Returns stem, or the first of stem-2, stem-3 … that is not taken.
function free(stem, taken) {
  let [name, number] = [stem, 1];
  while (taken.includes(name)) {
    number += 1;
    name = `${stem}-${number}`;
  }
  return name;
}

const texts = (rows, field) => rows.map((row) => row.fields[field].text);

// Returns text with one more container in the list of the pod: containers or initContainers.
export function addContainer(text, pod, list) {
  const taken = [...pod.containers.rows, ...pod.initContainers.rows].map((each) => each.name.text);
  return append(mend(text).text, [...pod.path, list], newContainer(free(FIRST_NAMES[list], taken)), orderAt);
}

// Returns text with one more environment variable, without a value, in the list of a container.
export function addVariable(text, env) {
  const names = texts(env.rows, "name");
  let number = env.rows.length + 1;
  while (names.includes(`NAME_${number}`)) number += 1;
  return append(mend(text).text, env.path, { name: `NAME_${number}`, value: "" }, orderAt);
}

// Returns text with one more port in the list of a container.
export function addPort(text, ports) {
  let number = 8080;
  while (texts(ports.rows, "containerPort").includes(String(number))) number += 1;
  return append(mend(text).text, ports.path, { containerPort: number }, orderAt);
}

// Returns text with one more mount of the volume of this name in the list of a container.
export function addMount(text, mounts, name) {
  const mountPath = free(`/mnt/${name}`, texts(mounts.rows, "mountPath"));
  return append(mend(text).text, mounts.path, { name, mountPath }, orderAt);
}

// Returns text with one more volume of the pod, an empty directory, which its first container mounts.
export function addVolume(text, pod) {
  const name = free("data", texts(pod.volumes.rows, "name"));
  const added = append(mend(text).text, pod.volumes.path, { name, emptyDir: {} }, orderAt);
  const [{ mounts }] = pod.containers.rows;
  return mounts.state === "foreign" ? added : addMount(added, mounts, name);
}

const mountsOf = (pod) => [...pod.initContainers.rows, ...pod.containers.rows].flatMap((each) => each.mounts.rows);

// Returns text without a volume of the pod and without what mounts it.
export function removeVolume(text, pod, volume) {
  const { text: name } = volume.fields.name;
  const users = mountsOf(pod).filter((mount) => mount.fields.name.text === name);
  return [...users.reverse(), volume].reduce((it, row) => removeItem(it, row.path), text);
}

// Returns text in which a volume of the pod, and what mounts it, has another name.
export function renameVolume(text, pod, volume, name) {
  const { text: before } = volume.fields.name;
  const users = mountsOf(pod).filter((mount) => mount.fields.name.text === before);
  return [volume, ...users].reduce((it, row) => write(it, row.fields.name.path, name, { stays: true }), text);
}

// Returns text in which a volume of the pod is of another kind; what is in it is still to be named.
export function changeVolume(text, volume, kind) {
  const { path, fields } = volume;
  if (fields.kind.state === "foreign") return text;
  const bare = remove(mend(text).text, [...path, fields.kind.text]);
  return set(bare, [...path, kind], SOURCES[kind] ? { [SOURCES[kind]]: "" } : {}, orderAt);
}

// Returns text with one more volume that all pods of the job see, on a claim that is made for it.
export function addJobVolume(text, volumes) {
  const mountPath = free("/data", texts(volumes.rows, "mountPath"));
  return append(mend(text).text, volumes.path, { mountPath, volumeClaim: CLAIM }, orderAt);
}

// Returns text in which a volume of the job is a claim that is made, one that exists, or a directory of each pod.
export function changeJobVolume(text, volume, kind) {
  const { path } = volume;
  const bare = ["volumeClaim", "volumeClaimName"].reduce((it, key) => remove(it, [...path, key]), mend(text).text);
  if (kind === "none") return bare;
  return set(bare, [...path, kind], kind === "volumeClaim" ? CLAIM : "", orderAt);
}
