// What the form shows of a job's YAML, and what each change of the form does to it.
//
// A field is {path, text, state, why}. state is "set", "unset" or "foreign": foreign means the YAML holds
// something that the form cannot show in full; it is shown as read-only and never written.

import { isAlias, isMap, isScalar, isSeq } from "yaml";
import { mend } from "./editor-mend.js";
import { append, parse, remove, set } from "./editor-text.js";

export const SKELETON = `apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: my-job
  namespace: default
spec:
  minAvailable: 1
  queue: default
  tasks:
  - name: main
    replicas: 1
    template:
      spec:
        containers:
        - name: main
          image: busybox
          command: ["sh", "-c", "echo hello"]
          resources:
            requests:
              cpu: 100m
        restartPolicy: Never
`;

const ORDER = {
  "": ["apiVersion", "kind", "metadata", "spec", "status"],
  metadata: ["name", "generateName", "namespace", "labels", "annotations"],
  spec: ["minAvailable", "schedulerName", "queue", "priorityClassName", "maxRetry", "policies", "plugins", "volumes", "tasks"],
  task: ["name", "replicas", "minAvailable", "policies", "template"],
  pod: ["initContainers", "containers", "restartPolicy"],
  container: ["name", "image", "workingDir", "command", "args", "env", "resources"],
  resources: ["requests", "limits"],
};
const POD = ["template", "spec"];
const CONTAINER = [...POD, "containers", 0];
const NUMBERS = new Set(["replicas", "minAvailable", "maxRetry", "ttlSecondsAfterFinished"]);
const SHELLS = new Set(["sh", "bash", "/bin/sh", "/bin/bash"]);

// Returns a path as Kubernetes writes it: spec.tasks[0].template.spec.
export function pathText(path) {
  return path.reduce((text, step) => {
    if (typeof step === "number" || !/^[\p{L}\p{N}_-]+$/u.test(step)) return `${text}[${step}]`;
    return text ? `${text}.${step}` : step;
  }, "");
}

// Returns the form's view of a text: {ok, why, job, tasks}.
export function read(text) {
  const doc = parse(mend(text).text);
  if (doc.errors.length > 0) {
    const [{ linePos, message }] = doc.errors;
    const line = linePos?.[0].line ?? 1;
    return { ok: false, line, why: `The YAML cannot be read from line ${line} on: ${message.split(" at line")[0]}.` };
  }
  if (doc.contents !== null && !isMap(doc.contents)) {
    return { ok: false, line: 1, why: "The YAML is not a job: it has to begin with apiVersion and kind." };
  }
  const list = tasksPath(doc);
  const found = walk(doc, list);
  const count = found.state === "set" && isSeq(found.node) ? found.node.items.length : 0;
  const tasks = Array.from({ length: count }, (_, index) => readTask(doc, [...list, index]));
  const why = found.state === "foreign" || (found.state === "set" && !isSeq(found.node)) ? foreignTasks(found) : "";
  return { ok: true, job: readJob(doc), tasks, tasksPath: list, tasksWhy: why };
}

function foreignTasks(found) {
  return `The tasks are shown only in the YAML: ${found.why ?? "they are not a list."}`;
}

function readJob(doc) {
  const at = (...path) => field(doc, path);
  return {
    name: at("metadata", "name"),
    namespace: at("metadata", "namespace"),
    queue: at("spec", "queue"),
    minAvailable: at("spec", "minAvailable"),
    priorityClassName: at("spec", "priorityClassName"),
    maxRetry: at("spec", "maxRetry"),
    ttlSecondsAfterFinished: at("spec", "ttlSecondsAfterFinished"),
  };
}

function readTask(doc, base) {
  const at = (...path) => field(doc, [...base, ...path]);
  const containers = doc.getIn([...base, ...POD, "containers"]);
  const others = isSeq(containers) ? Math.max(containers.items.length - 1, 0) : 0;
  return {
    path: base,
    name: at("name"),
    replicas: at("replicas"),
    image: at(...CONTAINER, "image"),
    workingDir: at(...CONTAINER, "workingDir"),
    restartPolicy: at(...POD, "restartPolicy"),
    command: readCommand(doc, [...base, ...CONTAINER]),
    env: readEnv(doc, [...base, ...CONTAINER, "env"]),
    resources: readResources(doc, [...base, ...CONTAINER, "resources"]),
    others,
  };
}

function tasksPath(doc) {
  const older = doc.hasIn(["spec", "taskSpecs"]) && !doc.hasIn(["spec", "tasks"]);
  return ["spec", older ? "taskSpecs" : "tasks"];
}

// Follows path and says what is there, or why the form cannot go on.
function walk(doc, path) {
  let node = doc.contents;
  for (let depth = 0; depth <= path.length; depth += 1) {
    const where = pathText(path.slice(0, depth)) || "the job";
    if (isAlias(node)) return foreign(`${where} is the alias *${node.source}`);
    if (node?.anchor) return foreign(`${where} is used elsewhere as *${node.anchor}`);
    if (depth === path.length) return { state: "set", node };
    if (node === null || node === undefined || (isScalar(node) && node.value === null)) return { state: "unset" };
    const step = path[depth];
    if (typeof step === "number" ? !isSeq(node) : !isMap(node)) {
      return foreign(`${where} is not a ${typeof step === "number" ? "list" : "mapping"}`);
    }
    if (!node.has(step)) {
      if (isMap(node) && node.items.some((pair) => String(pair.key) === "<<")) return foreign(`${where} takes over values with <<`);
      return { state: "unset" };
    }
    node = node.get(step, true);
  }
  return { state: "unset" };
}

const foreign = (what) => ({ state: "foreign", why: `${what}; change it in the YAML.` });

function field(doc, path) {
  const found = walk(doc, path);
  if (found.state !== "set") return { path, text: "", ...found };
  const { node } = found;
  if (!isScalar(node)) return { path, text: "", ...foreign(`${pathText(path)} is not a single value`) };
  if (node.value === null) return { path, text: "", state: "unset" };
  const text = typeof node.value === "string" ? node.value : (node.source ?? String(node.value));
  return { path, text, state: "set" };
}

function words(doc, path) {
  const found = walk(doc, path);
  if (found.state !== "set") return { path, words: [], ...found };
  if (isScalar(found.node) && found.node.value === null) return { path, words: [], state: "unset" };
  if (!isSeq(found.node)) return { path, words: [], ...foreign(`${pathText(path)} is not a list`) };
  const items = found.node.items.map((_, index) => field(doc, [...path, index]));
  const odd = items.find((item) => item.state === "foreign");
  if (odd) return { path, words: [], state: "foreign", why: odd.why };
  return { path, words: items.map((item) => item.text), state: "set" };
}

function readCommand(doc, base) {
  const command = words(doc, [...base, "command"]);
  const args = words(doc, [...base, "args"]);
  const [program, flag, line] = command.words;
  const isShell = command.words.length === 3 && SHELLS.has(program) && flag === "-c" && args.state === "unset";
  const isEmpty = command.state === "unset" && args.state === "unset";
  return { command, args, mode: isShell || isEmpty ? "shell" : "words", line: isShell ? line : "" };
}

function readEnv(doc, path) {
  const found = walk(doc, path);
  if (found.state !== "set" || (isScalar(found.node) && found.node.value === null)) {
    return { path, rows: [], state: found.state === "foreign" ? "foreign" : "unset", why: found.why };
  }
  if (!isSeq(found.node)) return { path, rows: [], ...foreign(`${pathText(path)} is not a list`) };
  const rows = found.node.items.map((_, index) => envRow(doc, [...path, index]));
  return { path, rows, state: "set" };
}

function envRow(doc, path) {
  const item = walk(doc, path);
  const name = field(doc, [...path, "name"]);
  const value = field(doc, [...path, "value"]);
  const keys = isMap(item.node) ? item.node.items.map((pair) => String(pair.key)) : [];
  const extra = keys.find((key) => key !== "name" && key !== "value");
  if (extra) return { path, name, value: { ...value, ...foreign(`the value comes from ${extra}`) } };
  return { path, name, value };
}

function readResources(doc, path) {
  const names = ["cpu", "memory"];
  for (const part of ["requests", "limits"]) {
    const map = walk(doc, [...path, part]).node;
    for (const pair of isMap(map) ? map.items : []) {
      const name = String(pair.key);
      if (name !== "<<" && !names.includes(name)) names.push(name);
    }
  }
  return names.map((name) => ({
    name,
    request: field(doc, [...path, "requests", name]),
    limit: field(doc, [...path, "limits", name]),
  }));
}

// Returns text with the field at path set to what was typed; nothing typed removes it.
export function write(text, path, typed) {
  const source = mend(text).text;
  if (field(parse(source), path).state === "foreign") return text;
  if (typed === "") return remove(source, path, keepDepth(path));
  const number = NUMBERS.has(path.at(-1)) && /^-?(0|[1-9]\d{0,14})$/.test(typed);
  return set(source, path, number ? Number(typed) : typed, orderAt(path));
}

// Returns text with a list of words at path; no words removes the list.
export function writeWords(text, path, list) {
  const source = mend(text).text;
  const now = words(parse(source), path);
  if (now.state === "foreign") return text;
  if (list.length === 0) return remove(source, path, keepDepth(path));
  if (now.words.length !== list.length) return set(source, path, list, orderAt(path));
  return list.reduce(
    (it, word, index) => (word === now.words[index] ? it : set(it, [...path, index], word)),
    source,
  );
}

// Returns text with the container at base run by one shell line; what its command and args said is replaced.
export function writeLine(text, base, line) {
  const source = mend(text).text;
  const now = readCommand(parse(source), base);
  if (now.command.state === "foreign" || now.args.state === "foreign") return text;
  const path = [...base, "command"];
  if (line === "") return remove(source, path, keepDepth(path));
  if (now.command.state === "set" && now.mode === "shell") return set(source, [...path, 2], line);
  const bare = remove(source, [...base, "args"], keepDepth(path));
  return set(bare, path, ["sh", "-c", line], orderAt(path));
}

// Returns the words of a command as one line that a shell splits into the same words.
export function shellLine(list) {
  return list.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

// Returns text with one more environment variable in the container at base.
export function addEnv(text, base, name, value) {
  const path = [...base, "env"];
  return append(mend(text).text, path, { name, value }, orderAt(path));
}

// Returns text with the resource renamed where it stands, in requests and limits.
export function renameResource(text, base, from, to) {
  let result = mend(text).text;
  for (const part of ["requests", "limits"]) {
    const path = [...base, "resources", part];
    const now = field(parse(result), [...path, from]);
    if (now.state !== "set") continue;
    result = set(result, [...path, to], now.text, []);
    result = remove(result, [...path, from], keepDepth(path));
  }
  return result;
}

// Returns text without the list item at path; the list goes with its last item.
export function removeItem(text, path) {
  return remove(mend(text).text, path, path.length - 2);
}

// Returns text with one more task, named apart from the others.
export function addTask(text) {
  const source = mend(text).text.trim() === "" ? SKELETON.replace(/ {2}tasks:[^]*/, "") : mend(text).text;
  const view = read(source);
  const names = new Set(view.tasks.map((task) => task.name.text));
  let number = view.tasks.length + 1;
  while (names.has(`task-${number}`)) number += 1;
  const name = `task-${number}`;
  const container = { name, image: "busybox", command: ["sh", "-c", "echo hello"], resources: { requests: { cpu: "100m" } } };
  const task = { name, replicas: 1, template: { spec: { containers: [container], restartPolicy: "Never" } } };
  return append(source, view.tasksPath, task, ORDER.spec);
}

function keepDepth(path) {
  const at = path.lastIndexOf("containers");
  if (at >= 0) return at + 2;
  return path[0] === "spec" && path.length > 3 ? 3 : 1;
}

function orderAt(path) {
  const last = path.at(-2);
  if (path.length === 1) return ORDER[""];
  if (last === 0 && path.at(-3) === "containers") return ORDER.container;
  if (typeof last === "number" && path.length === 4) return ORDER.task;
  if (last === "spec" && path.length > 2) return ORDER.pod;
  return ORDER[last] ?? [];
}
