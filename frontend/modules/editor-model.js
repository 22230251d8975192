// What the form shows of a job's YAML.
//
// A field is {path, text, state, why}. state is "set", "unset" or "foreign": foreign means the YAML holds
// something that the form cannot show in full; it is shown as read-only and never written.

import { isAlias, isMap, isScalar, isSeq } from "yaml";
import { mend } from "./editor-mend.js";
import { parse } from "./editor-text.js";

const POD = ["template", "spec"];
const CONTAINER = [...POD, "containers", 0];
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
    return {
      ok: false,
      line,
      why: `The YAML cannot be read from line ${line} on: ${message.split(" at line")[0]}.`,
    };
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
    simulated: at(...POD, "nodeSelector", "ui.volcano.sh/simulated"),
    seconds: at("template", "metadata", "annotations", "ui.volcano.sh/duration-seconds"),
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
      if (isMap(node) && node.items.some((pair) => String(pair.key) === "<<"))
        return foreign(`${where} takes over values with <<`);
      return { state: "unset" };
    }
    node = node.get(step, true);
  }
  return { state: "unset" };
}

const foreign = (what) => ({ state: "foreign", why: `${what}; change it in the YAML.` });

export function field(doc, path) {
  const found = walk(doc, path);
  if (found.state !== "set") return { path, text: "", ...found };
  const { node } = found;
  if (!isScalar(node)) return { path, text: "", ...foreign(`${pathText(path)} is not a single value`) };
  if (node.value === null) return { path, text: "", state: "unset" };
  const text = typeof node.value === "string" ? node.value : (node.source ?? String(node.value));
  return { path, text, state: "set" };
}

export function words(doc, path) {
  const found = walk(doc, path);
  if (found.state !== "set") return { path, words: [], ...found };
  if (isScalar(found.node) && found.node.value === null) return { path, words: [], state: "unset" };
  if (!isSeq(found.node)) return { path, words: [], ...foreign(`${pathText(path)} is not a list`) };
  const items = found.node.items.map((_, index) => field(doc, [...path, index]));
  const odd = items.find((item) => item.state === "foreign");
  if (odd) return { path, words: [], state: "foreign", why: odd.why };
  return { path, words: items.map((item) => item.text), state: "set" };
}

export function readCommand(doc, base) {
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
