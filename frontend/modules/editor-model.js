// What the form shows of a job's YAML, as fields of editor-node.js.

import { isMap, isScalar, isSeq } from "yaml";
import { mend } from "./editor-mend.js";
import { field, foreign, list, mapping, pathText, walk, words } from "./editor-node.js";
import { parse } from "./editor-text.js";

const POD = ["template", "spec"];
const CONTAINER = [...POD, "containers", 0];
const SHELLS = new Set(["sh", "bash", "/bin/sh", "/bin/bash"]);

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
  const path = tasksPath(doc);
  const found = list(doc, path);
  const tasks = Array.from({ length: found.count }, (_, index) => readTask(doc, [...path, index]));
  const why = found.state === "foreign" ? `The tasks are shown only in the YAML: ${found.why}` : "";
  const policies = readPolicies(doc, ["spec", "policies"]);
  return { ok: true, job: readJob(doc), policies, plugins: readPlugins(doc), tasks, tasksPath: path, tasksWhy: why };
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
    minSuccess: at("spec", "minSuccess"),
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
    minAvailable: at("minAvailable"),
    maxRetry: at("maxRetry"),
    policies: readPolicies(doc, [...base, "policies"]),
    dependsOn: {
      path: [...base, "dependsOn"],
      names: words(doc, [...base, "dependsOn", "name"]),
      iteration: at("dependsOn", "iteration"),
    },
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

// Returns the policies at path: {path, state, why, rows}. The events of a row are those of event and of events.
function readPolicies(doc, path) {
  const { count, ...found } = list(doc, path);
  return { ...found, rows: Array.from({ length: count }, (_, index) => readPolicy(doc, [...path, index])) };
}

function readPolicy(doc, path) {
  const at = (...rest) => field(doc, [...path, ...rest]);
  const more = list(doc, [...path, "events"]);
  const listed = Array.from({ length: more.count }, (_, index) => at("events", index));
  const single = at("event");
  const events = [...(single.state === "unset" ? [] : [single]), ...listed];
  const [exitCode, action, timeout] = ["exitCode", "action", "timeout"].map((name) => at(name));
  const odd = [mapping(doc, path), more, ...events, exitCode, timeout].find((each) => each.state === "foreign");
  return { path, why: odd?.why ?? "", events: events.length > 0 ? events : [single], exitCode, action, timeout };
}

// Returns the plugins: {path, state, why, chosen}, where chosen holds the arguments of each by its name.
function readPlugins(doc) {
  const path = ["spec", "plugins"];
  const { keys, ...found } = mapping(doc, path);
  return { ...found, chosen: new Map(keys.map((name) => [name, words(doc, [...path, name])])) };
}
