// What a path of the YAML holds, as far as a form can show it.
//
// A field is {path, text, state, why}. state is "set", "unset" or "foreign": foreign means the YAML holds
// something that the form cannot show in full; it is shown as read-only and never written.

import { isAlias, isMap, isScalar, isSeq } from "yaml";

// Returns a path as Kubernetes writes it: spec.tasks[0].template.spec.
export function pathText(path) {
  return path.reduce((text, step) => {
    if (typeof step === "number" || !/^[\p{L}\p{N}_-]+$/u.test(step)) return `${text}[${step}]`;
    return text ? `${text}.${step}` : step;
  }, "");
}

// Follows path and says what is there, or why the form cannot go on.
export function walk(doc, path) {
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

export const foreign = (what) => ({ state: "foreign", why: `${what}; change it in the YAML.` });

const isNothing = (found) => found.state === "set" && isScalar(found.node) && found.node.value === null;

export function field(doc, path) {
  const found = walk(doc, path);
  if (found.state !== "set") return { path, text: "", ...found };
  const { node } = found;
  if (!isScalar(node)) return { path, text: "", ...foreign(`${pathText(path)} is not a single value`) };
  if (node.value === null) return { path, text: "", state: "unset" };
  const text = typeof node.value === "string" ? node.value : (node.source ?? String(node.value));
  return { path, text, state: "set" };
}

// Returns the list at path: {path, state, why, count}.
export function list(doc, path) {
  const found = walk(doc, path);
  if (found.state !== "set") return { path, count: 0, ...found };
  if (isNothing(found)) return { path, count: 0, state: "unset" };
  if (!isSeq(found.node)) return { path, count: 0, ...foreign(`${pathText(path)} is not a list`) };
  return { path, count: found.node.items.length, state: "set" };
}

// Returns the keys of the mapping at path: {path, state, why, keys}.
export function mapping(doc, path) {
  const found = walk(doc, path);
  if (found.state !== "set") return { path, keys: [], ...found };
  if (isNothing(found)) return { path, keys: [], state: "unset" };
  if (!isMap(found.node)) return { path, keys: [], ...foreign(`${pathText(path)} is not a mapping`) };
  return { path, keys: found.node.items.map((pair) => String(pair.key)), state: "set" };
}

export function words(doc, path) {
  const { count, ...found } = list(doc, path);
  if (found.state !== "set") return { words: [], ...found };
  const items = Array.from({ length: count }, (_, index) => field(doc, [...path, index]));
  const odd = items.find((item) => item.state === "foreign");
  if (odd) return { path, words: [], state: "foreign", why: odd.why };
  return { path, words: items.map((item) => item.text), state: "set" };
}
