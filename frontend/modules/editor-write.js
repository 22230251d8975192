// What each change of the form does to a job's YAML: one path changes, everything else stays.

import { mend } from "./editor-mend.js";
import { field, words } from "./editor-node.js";
import { keepDepth, orderAt, valueAt } from "./editor-places.js";
import { readCommand } from "./editor-pod.js";
import { append, parse, remove, set } from "./editor-text.js";

// Returns text with the field at path set to what was typed; nothing typed removes it, unless it is to stay.
export function write(text, path, typed, { stays = false } = {}) {
  const source = mend(text).text;
  if (field(parse(source), path).state === "foreign") return text;
  if (typed === "" && !stays) return remove(source, path, keepDepth(path));
  return set(source, path, valueAt(path, typed), orderAt);
}

// Returns text with a list of words at path; no words removes the list.
export function writeWords(text, path, list) {
  const source = mend(text).text;
  const now = words(parse(source), path);
  if (now.state === "foreign") return text;
  if (list.length === 0) return remove(source, path, keepDepth(path));
  if (now.words.length !== list.length) return set(source, path, list, orderAt);
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
  return set(bare, path, ["sh", "-c", line], orderAt);
}

// Returns the words of a command as one line that a shell splits into the same words.
export function shellLine(list) {
  return list.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

// Returns text without the list item at path; the list goes with its last item.
export function removeItem(text, path) {
  return remove(mend(text).text, path, path.length - 2);
}

// Returns text with one more policy in the list at path.
export function addPolicy(text, path, policy) {
  return append(mend(text).text, path, policy, orderAt);
}

// Returns text with one more event in the policy at path.
export function addEvent(text, path, event) {
  const list = [...path, "events"];
  return append(mend(text).text, list, event, orderAt);
}

// Returns text in which the policy at path answers an exit code and no event.
export function answerCode(text, path, code) {
  const source = set(mend(text).text, [...path, "exitCode"], code, orderAt);
  return ["event", "events"].reduce((it, name) => remove(it, [...path, name]), source);
}

// Returns text in which the policy at path answers one event and no exit code.
export function answerEvent(text, path, event) {
  return remove(set(mend(text).text, [...path, "event"], event, orderAt), [...path, "exitCode"]);
}

// Returns text with a plugin, with these arguments; without arguments it has an empty list.
export function writePlugin(text, name, list) {
  const source = mend(text).text;
  const path = ["spec", "plugins", name];
  const now = words(parse(source), path);
  if (now.state === "foreign") return text;
  if (now.words.length !== list.length || list.length === 0) return set(source, path, list, orderAt);
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
