// What the form shows of a pod template: its containers and its volumes, as fields of editor-node.js.

import { isMap } from "yaml";
import { field, foreign, list, mapping, walk, words } from "./editor-node.js";

// The kinds of volumes that the form writes, and the field of each that names what it holds.
export const SOURCES = {
  emptyDir: "",
  configMap: "name",
  secret: "secretName",
  persistentVolumeClaim: "claimName",
  hostPath: "path",
};
const SHELLS = new Set(["sh", "bash", "/bin/sh", "/bin/bash"]);

// Returns the containers, the init containers and the volumes of the pod spec at path.
export function readPod(doc, path) {
  const containers = items(doc, [...path, "containers"], readContainer);
  // A task without containers shows the one that it lacks.
  if (containers.rows.length === 0) containers.rows = [readContainer(doc, [...path, "containers", 0])];
  return {
    path,
    containers,
    initContainers: items(doc, [...path, "initContainers"], readContainer),
    volumes: items(doc, [...path, "volumes"], readVolume),
  };
}

// Returns the list at path with each item as read(doc, path) tells it: {path, state, why, rows}.
export function items(doc, path, read) {
  const { count, ...found } = list(doc, path);
  return { ...found, rows: Array.from({ length: count }, (_, index) => read(doc, [...path, index])) };
}

function readContainer(doc, path) {
  const at = (name) => field(doc, [...path, name]);
  const entries = (name, ...names) => items(doc, [...path, name], (_, each) => entry(doc, each, names));
  return {
    path,
    name: at("name"),
    image: at("image"),
    workingDir: at("workingDir"),
    command: readCommand(doc, path),
    env: items(doc, [...path, "env"], readVariable),
    ports: entries("ports", "name", "containerPort"),
    mounts: entries("volumeMounts", "name", "mountPath", "subPath", "readOnly"),
    resources: readResources(doc, [...path, "resources"]),
  };
}

// Returns the item at path with these of its fields.
export function entry(doc, path, names) {
  return { path, fields: Object.fromEntries(names.map((name) => [name, field(doc, [...path, name])])) };
}

export function readCommand(doc, base) {
  const command = words(doc, [...base, "command"]);
  const args = words(doc, [...base, "args"]);
  const [program, flag, line] = command.words;
  const isShell = command.words.length === 3 && SHELLS.has(program) && flag === "-c" && args.state === "unset";
  const isEmpty = command.state === "unset" && args.state === "unset";
  return { command, args, mode: isShell || isEmpty ? "shell" : "words", line: isShell ? line : "" };
}

function readVariable(doc, path) {
  const row = entry(doc, path, ["name", "value"]);
  const extra = mapping(doc, path).keys.find((key) => key !== "name" && key !== "value");
  if (extra) row.fields.value = { ...row.fields.value, ...foreign(`the value comes from ${extra}`) };
  return row;
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

// A volume has one kind, a key of SOURCES; without any it is an empty directory, as in Kubernetes. One that
// holds nothing of a name has no field source.
function readVolume(doc, path) {
  const { fields } = entry(doc, path, ["name"]);
  const found = mapping(doc, path);
  const kinds = found.keys.filter((key) => key !== "name");
  const [kind = "emptyDir"] = kinds;
  const isKnown = kinds.length < 2 && kind in SOURCES;
  const said = isKnown ? found : foreign(`this volume is of the kind ${kinds.join(" and ")}`);
  const state = isKnown ? found.state : "foreign";
  fields.kind = { path, text: kind, state, why: said.why };
  if (SOURCES[kind]) fields.source = field(doc, [...path, kind, SOURCES[kind]]);
  return { path, fields };
}

// Returns the volume that all pods of a job see, at path of spec.volumes.
export function readJobVolume(doc, path) {
  const at = (...rest) => field(doc, [...path, ...rest]);
  const { keys, ...found } = mapping(doc, path);
  const kind = ["volumeClaim", "volumeClaimName"].find((key) => keys.includes(key)) ?? "none";
  const modes = words(doc, [...path, "volumeClaim", "accessModes"]);
  const mode = at("volumeClaim", "accessModes", 0);
  return {
    path,
    fields: {
      mountPath: at("mountPath"),
      kind: { path, text: kind, state: found.state === "foreign" ? "foreign" : "set", why: found.why },
      volumeClaimName: at("volumeClaimName"),
      storage: at("volumeClaim", "resources", "requests", "storage"),
      storageClassName: at("volumeClaim", "storageClassName"),
      accessMode: modes.words.length > 1 ? { ...mode, ...foreign("there are several access modes") } : mode,
    },
  };
}
