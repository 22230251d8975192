// Changes an element into another one in place, so that focus, selection, scroll, typed text and open <details> stay.
import { show, showAll, stamp } from "./time.js";

// What the reader, not the server, decides.
const READERS = { DETAILS: ["open"], DIALOG: ["open"], INPUT: ["value", "checked"], OPTION: ["selected"] };
const OURS = ["data-changed", "data-chosen", "data-told", "data-left"];

function kept(element, name) {
  if (READERS[element.tagName]?.includes(name) || OURS.includes(name)) return true;
  return element.tagName === "TIME" && name === "title";
}

function attributes(old, fresh) {
  for (const { name, value } of fresh.attributes) {
    if (kept(old, name) || old.getAttribute(name) === value) continue;
    old.setAttribute(name, value);
    if (name === "data-phase") old.dataset.changed = "";
  }
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !kept(old, name)) old.removeAttribute(name);
  }
}

// A module listens to the element that it was mounted on; another one's element does not take its place.
function behaviour({ dataset }) {
  return `${dataset?.module ?? ""} ${dataset?.opens ?? ""}`;
}

function alike(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName) return false;
  return (old.id ?? "") === (fresh.id ?? "") && behaviour(old) === behaviour(fresh);
}

function find(node, from) {
  if (!node.id) return alike(from, node) ? from : null;
  for (let each = from; each; each = each.nextSibling) {
    if (each.id === node.id && alike(each, node)) return each;
  }
  return null;
}

export function move(parent, node, before) {
  if (node.nextSibling === before && node.parentNode === parent) return;
  // moveBefore keeps focus and running state where a browser has it.
  if (parent.moveBefore && node.isConnected) parent.moveBefore(node, before);
  else parent.insertBefore(node, before);
}

function children(old, fresh) {
  let at = old.firstChild;
  for (const node of [...fresh.childNodes]) {
    const match = at && find(node, at);
    if (match) {
      if (match === at) at = at.nextSibling;
      else move(old, match, at);
      morph(match, node);
    } else {
      old.insertBefore(node, at);
      if (node.nodeType === Node.ELEMENT_NODE) showAll(node);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

export function morph(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE || old.nodeType === Node.COMMENT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.tagName === "TIME") {
    stamp(fresh);
    attributes(old, fresh);
    show(old);
    return;
  }
  attributes(old, fresh);
  // A module that draws its own content says so; it hears of new data from its attributes.
  if (!old.hasAttribute("data-own")) children(old, fresh);
}

const maker = document.createElement("template");

export function element(html) {
  maker.innerHTML = html.trim();
  return maker.content.firstElementChild;
}
