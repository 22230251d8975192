// What each change of the form does to a job's YAML: one path changes, everything else stays.

import { mend } from "./editor-mend.js";
import { read, readCommand } from "./editor-model.js";
import { field, words } from "./editor-node.js";
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

const TASK = ["name", "replicas", "minAvailable", "maxRetry", "dependsOn", "policies", "template"];
const ORDER = {
  "": ["apiVersion", "kind", "metadata", "spec", "status"],
  metadata: ["name", "generateName", "namespace", "labels", "annotations"],
  spec: [
    "minAvailable",
    "schedulerName",
    "queue",
    "priorityClassName",
    "maxRetry",
    "minSuccess",
    "ttlSecondsAfterFinished",
    "policies",
    "plugins",
    "volumes",
    "tasks",
  ],
  task: TASK,
  policy: ["event", "events", "exitCode", "action", "timeout"],
  dependsOn: [...TASK, "iteration"], // placed in a task when it is new
  pod: ["initContainers", "containers", "restartPolicy"],
  container: ["name", "image", "workingDir", "command", "args", "env", "resources"],
  resources: ["requests", "limits"],
};
const NUMBERS = new Set(["replicas", "minAvailable", "maxRetry", "minSuccess", "ttlSecondsAfterFinished", "exitCode"]);

// Returns text with the field at path set to what was typed; nothing typed removes it, unless it is to stay.
export function write(text, path, typed, { stays = false } = {}) {
  const source = mend(text).text;
  if (field(parse(source), path).state === "foreign") return text;
  if (typed === "" && !stays) return remove(source, path, keepDepth(path));
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
  return list.reduce((it, word, index) => (word === now.words[index] ? it : set(it, [...path, index], word)), source);
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

// Returns text with one more policy in the list at path.
export function addPolicy(text, path, policy) {
  return append(mend(text).text, path, policy, orderAt(path));
}

// Returns text with one more event in the policy at path.
export function addEvent(text, path, event) {
  const list = [...path, "events"];
  return append(mend(text).text, list, event, orderAt(list));
}

// Returns text in which the policy at path answers an exit code and no event.
export function answerCode(text, path, code) {
  const source = set(mend(text).text, [...path, "exitCode"], code, ORDER.policy);
  return ["event", "events"].reduce((it, name) => remove(it, [...path, name]), source);
}

// Returns text in which the policy at path answers one event and no exit code.
export function answerEvent(text, path, event) {
  return remove(set(mend(text).text, [...path, "event"], event, ORDER.policy), [...path, "exitCode"]);
}

// Returns text with a plugin, with these arguments; without arguments it has an empty list.
export function writePlugin(text, name, list) {
  const source = mend(text).text;
  const path = ["spec", "plugins", name];
  const now = words(parse(source), path);
  if (now.state === "foreign") return text;
  if (now.words.length !== list.length || list.length === 0) return set(source, path, list, orderAt(path.slice(0, 2)));
  return list.reduce((it, word, index) => (word === now.words[index] ? it : set(it, [...path, index], word)), source);
}

// Returns text without a plugin; the mapping of plugins goes with the last.
export function removePlugin(text, name) {
  return remove(mend(text).text, ["spec", "plugins", name], 1);
}

// Returns text in which the task waits for these tasks; how many of them it waits for goes with the last.
export function writeDependencies(text, path, names) {
  const source = writeWords(text, [...path, "name"], names);
  return names.length > 0 ? source : remove(source, path);
}

// Returns text with one more task, named apart from the others.
export function addTask(text) {
  const source = mend(text).text.trim() === "" ? SKELETON.replace(/ {2}tasks:[\s\S]*/, "") : mend(text).text;
  const view = read(source);
  const names = new Set(view.tasks.map((task) => task.name.text));
  let number = view.tasks.length + 1;
  while (names.has(`task-${number}`)) number += 1;
  const name = `task-${number}`;
  const container = {
    name,
    image: "busybox",
    command: ["sh", "-c", "echo hello"],
    resources: { requests: { cpu: "100m" } },
  };
  const task = { name, replicas: 1, template: { spec: { containers: [container], restartPolicy: "Never" } } };
  return append(source, view.tasksPath, task, ORDER.spec);
}

function keepDepth(path) {
  const policy = path.lastIndexOf("policies");
  if (policy >= 0) return policy + 2;
  const at = path.lastIndexOf("containers");
  if (at >= 0) return at + 2;
  return path[0] === "spec" && path.length > 3 ? 3 : 1;
}

function orderAt(path) {
  const last = path.at(-2);
  if (path.length === 1) return ORDER[""];
  if (path.at(-3) === "policies") return ORDER.policy;
  if (last === 0 && path.at(-3) === "containers") return ORDER.container;
  if (typeof last === "number" && path.length === 4) return ORDER.task;
  if (last === "spec" && path.length > 2) return ORDER.pod;
  return ORDER[last] ?? [];
}
