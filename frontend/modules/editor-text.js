// Changes one value in a YAML text and leaves every other character alone.
//
// Each change is made twice: on yaml's Document, which defines what the text must mean afterwards,
// and on the text itself, so that layout and comments stay. When the two disagree, the Document is
// printed instead: its comments survive, only its layout may change.

import { isAlias, isCollection, isMap, isPair, isScalar, isSeq, parseDocument } from "yaml";
import { after, flow, key as keyText, scalar } from "./editor-scalar.js";

const PARSE = { keepSourceTokens: false, uniqueKeys: true, logLevel: "silent" };

// The last texts that were parsed: each is asked for several times, and what a change makes of one is read next.
const KEPT = 4;
const parsed = new Map();

// Returns the text as a Document of the yaml package, which others get too: nobody may change it.
export function parse(text) {
  let doc = parsed.get(text);
  if (!doc) {
    doc = parseDocument(text, PARSE);
    if (parsed.size === KEPT) parsed.delete(parsed.keys().next().value);
    parsed.set(text, doc);
  }
  return doc;
}

const UNORDERED = () => [];

// Returns text with value at path; parents that are missing are made.
// order(path) lists the keys beside the last of path, in the order in which a new one is placed among them.
export function set(text, path, value, order = UNORDERED) {
  return change(
    text,
    (doc) => doc.setIn(path, doc.createNode(value)),
    (doc) => spliceSet(doc, text, path, value, order),
  );
}

// Returns text without path. Parents deeper than keep that would be left empty go too.
export function remove(text, path, keep = path.length) {
  const doc = parse(text);
  let target = path;
  while (target.length - 1 > keep && doc.getIn(target.slice(0, -1))?.items?.length === 1) {
    target = target.slice(0, -1);
  }
  if (!doc.hasIn(target)) return text;
  return change(
    text,
    (it) => it.deleteIn(target),
    (it) => spliceRemove(it, text, target),
  );
}

// Returns text with value added at the end of the list at path, which is made when missing.
export function append(text, path, value, order = UNORDERED) {
  const doc = parse(text);
  const list = doc.getIn(path);
  if (!isSeq(list) || list.items.length === 0) return set(text, path, [value], order);
  return change(
    text,
    (it) => it.addIn(path, it.createNode(value)),
    (it) => spliceAppend(it.getIn(path), text, value),
  );
}

function change(text, onDocument, onText) {
  const wanted = parseDocument(text, PARSE); // one of its own, to be changed
  if (wanted.errors.length > 0) throw new SyntaxError(wanted.errors[0].message);
  if (wanted.contents === null) wanted.contents = wanted.createNode({});
  onDocument(wanted);
  const candidate = onText(parse(text));
  return candidate !== null && means(candidate, wanted) ? candidate : print(wanted, text);
}

function means(text, wanted) {
  const doc = parse(text);
  return doc.errors.length === 0 && same(doc.toJS(), wanted.toJS());
}

function print(doc, text) {
  const indented = /^( *)[\w"'-][^\n#]*:[ ]*\n\1 +- /m.test(text);
  return doc.toString({ lineWidth: 0, indentSeq: indented, flowCollectionPadding: false });
}

function same(one, other) {
  if (Object.is(one, other)) return true;
  if (typeof one !== "object" || typeof other !== "object" || !one || !other) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = Object.keys(one);
  return keys.length === Object.keys(other).length && keys.every((k) => k in other && same(one[k], other[k]));
}

function spliceSet(doc, text, path, value, order) {
  const node = doc.getIn(path, true);
  if (node !== undefined) return replace(doc, text, path, node, value);
  let depth = path.length - 1;
  while (depth > 0 && !isCollection(doc.getIn(path.slice(0, depth), true))) depth -= 1;
  const holder = depth === 0 ? doc.contents : doc.getIn(path.slice(0, depth), true);
  const rest = path.slice(depth + 1).reduceRight((inner, step) => ({ [step]: inner }), value);
  const step = path[depth];
  if (doc.hasIn(path.slice(0, depth + 1))) {
    return replace(doc, text, path.slice(0, depth + 1), doc.getIn(path.slice(0, depth + 1), true), rest);
  }
  if (isMap(holder) && typeof step === "string") {
    return insert(holder, text, step, rest, order(path.slice(0, depth + 1)));
  }
  if (holder === null || holder === undefined) {
    const lead = text === "" || text.endsWith("\n") ? text : `${text}\n`;
    return `${lead}${keyText(step)}:${after(rest, 0)}\n`;
  }
  return null;
}

function replace(doc, text, path, node, value) {
  if (!isScalar(node) || !node.range) return replaceCollection(doc, text, path, node, value);
  const [start, end] = node.range;
  const column = lineIndent(text, start);
  const inFlow = insideFlow(doc, path);
  if (value !== null && typeof value === "object") {
    const written = inFlow ? ` ${flow(value)}` : after(value, column);
    return text.slice(0, colonEnd(text, start, node)) + written + text.slice(end);
  }
  const written = scalar(value, { style: node.type, indent: column + 2, flow: inFlow });
  const gap = /[\s[{(]$/.test(text.slice(0, start)) ? "" : " ";
  const newline = text.slice(start, end).endsWith("\n") ? "\n" : "";
  return text.slice(0, start) + gap + commented(text, node, written) + newline + text.slice(end);
}

// Returns what is written with the comment that stands beside a block scalar's | or >.
function commented(text, node, written) {
  if (!node.type?.startsWith("BLOCK")) return written;
  const header = text.slice(node.range[0]).split("\n", 1)[0];
  const comment = header.match(/ #.*$/)?.[0] ?? "";
  const [first, ...rest] = written.split("\n");
  return [first + comment, ...rest].join("\n");
}

function replaceCollection(doc, text, path, node, value) {
  if (!isCollection(node) || !node.range) return null;
  const pair = pairAt(doc, path);
  const [start] = node.range;
  const end = endOf(node);
  if (node.flow || !pair) {
    const inFlow = insideFlow(doc, path);
    if (!inFlow && pair && needsBlock(value)) {
      const indent = columnOf(text, pair.key.range[0]);
      return text.slice(0, start).replace(/ +$/, "") + after(value, indent) + text.slice(end);
    }
    return text.slice(0, start) + flow(value) + text.slice(end);
  }
  const from = pair.key.range[1];
  const indent = columnOf(text, pair.key.range[0]);
  const newline = text[end - 1] === "\n" ? "\n" : "";
  return `${text.slice(0, from)}:${after(value, indent)}${newline}${text.slice(end)}`;
}

function needsBlock(value) {
  const items = Array.isArray(value) ? value : Object.values(value ?? {});
  return items.some((item) => (typeof item === "string" ? item.includes("\n") : item && typeof item === "object"));
}

function colonEnd(text, start, node) {
  // An empty value sits after the spaces that follow its colon.
  return node.range[0] === node.range[1]
    ? text.slice(0, start).trimEnd().length
    : start - (text[start - 1] === " " ? 1 : 0);
}

function insert(map, text, name, value, order) {
  if (map.flow) return insertFlow(map, text, `${keyText(name)}: ${flow(value)}`);
  const first = map.items[0]?.key;
  if (!first?.range) return null;
  const indent = columnOf(text, first.range[0]);
  const line = `${keyText(name)}:${after(value, indent)}`;
  const rank = (word) => (order.includes(word) ? order.indexOf(word) : order.length);
  const later = map.items.findIndex((pair) => rank(String(pair.key)) > rank(name));
  if (later === 0) {
    const at = first.range[0];
    const above = indent > 0 ? aboveComments(text, lineStart(text, at)) : at;
    if (above < lineStart(text, at)) return `${text.slice(0, above)}${" ".repeat(indent)}${line}\n${text.slice(above)}`;
    return `${text.slice(0, at)}${line}\n${" ".repeat(indent)}${text.slice(at)}`;
  }
  const before = map.items.at(later < 0 ? -1 : later - 1);
  return insertLine(text, endOf(before), " ".repeat(indent) + line);
}

// Returns the start of the comment lines that stand directly above a line: they speak of it.
function aboveComments(text, start) {
  let at = start;
  while (at > 0 && /^ *#/.test(text.slice(lineStart(text, at - 1), at))) at = lineStart(text, at - 1);
  return at;
}

function insertFlow(node, text, written) {
  const close = node.range[1] - 1;
  if (node.items.length === 0) return `${text.slice(0, node.range[0] + 1)}${written}${text.slice(close)}`;
  const end = endOf(node.items.at(-1));
  return `${text.slice(0, end)}, ${written}${text.slice(end)}`;
}

function insertLine(text, end, line) {
  if (end > 0 && text[end - 1] === "\n") return `${text.slice(0, end)}${line}\n${text.slice(end)}`;
  const stop = text.indexOf("\n", end);
  if (stop < 0) return `${text}\n${line}\n`;
  return `${text.slice(0, stop + 1)}${line}\n${text.slice(stop + 1)}`;
}

function spliceAppend(list, text, value) {
  if (list.flow) return insertFlow(list, text, flow(value));
  const indent = columnOf(text, list.range[0]);
  return insertLine(text, endOf(list.items.at(-1)), `${" ".repeat(indent)}-${after(value, indent, true)}`);
}

function spliceRemove(doc, text, path) {
  const holder = path.length === 1 ? doc.contents : doc.getIn(path.slice(0, -1), true);
  const step = path.at(-1);
  const index = isMap(holder) ? holder.items.findIndex((pair) => String(pair.key) === String(step)) : Number(step);
  const item = holder.items[index];
  if (holder.items.length === 1) return emptied(doc, text, path.slice(0, -1), holder);
  if (holder.flow) return cutFlow(holder, text, index);
  const start = isPair(item) ? item.key.range[0] : dash(text, holder, index);
  if (start < 0) return null;
  const next = holder.items[index + 1];
  if (isPair(item) && text.slice(lineStart(text, start), start).trim() !== "") {
    return text.slice(0, start) + text.slice(next.key.range[0]);
  }
  return text.slice(0, lineStart(text, start)) + text.slice(lineEnd(text, endOf(item)));
}

function emptied(doc, text, path, holder) {
  const empty = isMap(holder) ? "{}" : "[]";
  if (holder.flow || path.length === 0) return text.slice(0, holder.range[0]) + empty + text.slice(endOf(holder));
  const pair = pairAt(doc, path);
  if (!pair) return null;
  const end = endOf(holder);
  const newline = text[end - 1] === "\n" ? "\n" : "";
  return `${text.slice(0, pair.key.range[1])}: ${empty}${newline}${text.slice(end)}`;
}

function cutFlow(holder, text, index) {
  const [item, next, last] = [holder.items[index], holder.items[index + 1], holder.items[index - 1]];
  const start = (node) => (isPair(node) ? node.key.range[0] : node.range[0]);
  if (next) return text.slice(0, start(item)) + text.slice(start(next));
  return text.slice(0, endOf(last)) + text.slice(endOf(item));
}

// Returns where the dash of a block list's item is, or -1 when it does not begin its line.
function dash(text, list, index) {
  const start = lineStart(text, list.items[index].range[0]);
  const indent = columnOf(text, list.range[0]);
  return /^ *$/.test(text.slice(start, start + indent)) && text[start + indent] === "-" ? start + indent : -1;
}

function pairAt(doc, path) {
  if (path.length === 0) return null;
  const holder = path.length === 1 ? doc.contents : doc.getIn(path.slice(0, -1), true);
  return isMap(holder) ? holder.items.find((pair) => String(pair.key) === String(path.at(-1))) : null;
}

function insideFlow(doc, path) {
  return (
    path.some((_, depth) => depth > 0 && doc.getIn(path.slice(0, depth), true)?.flow) || Boolean(doc.contents?.flow)
  );
}

// Returns where the text of a node ends; trailing comments and blank lines are not part of it.
function endOf(node) {
  if (isPair(node))
    return node.value?.range ? Math.max(endOf(node.value), node.key.range[1] + 1) : node.key.range[1] + 1;
  if (isAlias(node) || isScalar(node) || node.flow || node.items.length === 0) return node.range[1];
  return endOf(node.items.at(-1));
}

const lineStart = (text, at) => text.lastIndexOf("\n", at - 1) + 1;
const columnOf = (text, at) => at - lineStart(text, at);

function lineEnd(text, at) {
  if (at > 0 && text[at - 1] === "\n") return at;
  const stop = text.indexOf("\n", at);
  return stop < 0 ? text.length : stop + 1;
}

// Returns the column at which the key of the value at `at` begins.
function lineIndent(text, at) {
  const line = text.slice(lineStart(text, at), at);
  return line.match(/^(?: *- )* */)[0].length;
}
