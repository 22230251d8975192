// Keeps every [data-live] element as the server's state is, and says at the top how fresh the page is.
//
// data-live="topic?query" data-revision="123" on a container subscribes to the topic. A message's parts are
// found by their ids; `order` lists the ids of the container's children. stream() is for text that flows, as logs do.

import { order as bring } from "./hold.js";
import { element, morph } from "./morph.js";
import { connect } from "./socket.js";
import { correct } from "./time.js";

const topics = new Map(); // topic -> { revision, answered, denied, containers: Map of each to the revision it was rendered at }
const streams = new Map(); // id -> { name, params, receive }
let socket = null;
let streamCount = 0;

function ask(topic) {
  const known = topics.get(topic);
  known.answered = false;
  socket?.send({ op: "subscribe", id: topic, topic, revision: known.revision });
}

function open(id) {
  const { name, params } = streams.get(id);
  const query = new URLSearchParams(Object.entries(params()).map(([key, value]) => [key, String(value)]));
  socket?.send({ op: "subscribe", id, stream: `${name}?${query}` });
}

// Subscribes to a stream of the server: params() is asked again after each reconnect, so that it can say where to go on.
// Returns the function that ends it.
export function stream(name, params, receive) {
  streamCount += 1;
  const id = `stream-${streamCount}`;
  streams.set(id, { name, params, receive });
  if (socket?.ready) open(id);
  return () => {
    streams.delete(id);
    socket?.send({ op: "unsubscribe", id });
  };
}

function scan() {
  const seen = new Map();
  for (const container of document.querySelectorAll("[data-live]")) {
    const { live: topic, revision } = container.dataset;
    if (!seen.has(topic)) seen.set(topic, { containers: new Map(), revision: Number(revision) || 0 });
    seen.get(topic).containers.set(container, Number(revision) || 0);
  }
  for (const topic of topics.keys()) {
    if (seen.has(topic)) continue;
    topics.delete(topic);
    socket?.send({ op: "unsubscribe", id: topic });
  }
  for (const [topic, { containers, revision }] of seen) {
    const known = topics.get(topic);
    if (known) {
      // What was swapped in may have been rendered before changes that have come already: they are asked for again.
      const swapped = [...containers].filter(([each, at]) => known.containers.get(each) !== at && at < known.revision);
      known.containers = containers;
      if (swapped.length) {
        known.revision = Math.min(...swapped.map(([, at]) => at));
        if (socket?.ready) ask(topic);
      }
      continue;
    }
    topics.set(topic, { containers, revision, answered: false, denied: "" });
    if (socket?.ready) ask(topic);
  }
  report();
}

function refocus(before) {
  if (!before || document.activeElement === before || before.isConnected || before === document.body) return;
  document.querySelector("[data-module=rows] tbody a[href]")?.focus({ preventScroll: true });
}

function apply(known, { set, order }) {
  const focused = document.activeElement;
  const fresh = new Map();
  for (const [id, html] of Object.entries(set)) {
    const made = element(html);
    if (!made) continue;
    const old = document.getElementById(id);
    if (old) {
      morph(old, made);
      globalThis.htmx?.process(old);
    } else {
      fresh.set(id, made);
    }
  }
  for (const container of known.containers.keys()) bring(container, order, fresh);
  refocus(focused);
}

const receivers = {
  parts(message) {
    const known = topics.get(message.id);
    if (!known) return;
    Object.assign(known, { revision: message.revision, answered: true, denied: "" });
    apply(known, message);
    for (const container of known.containers.keys()) {
      container.dataset.revision = message.revision;
      container.dispatchEvent(new CustomEvent("live:changed", { bubbles: true, detail: message }));
    }
  },
  denied(message) {
    streams.get(message.id)?.receive(message);
    const known = topics.get(message.id);
    if (!known) return;
    Object.assign(known, { answered: true, denied: message.message });
    for (const container of known.containers.keys()) container.dataset.denied = message.message;
  },
  head(message) {
    correct(message.now);
    if (!topics.size) return;
    for (const each of document.querySelectorAll("[data-head]")) each.textContent = message.revision;
  },
  log(message) {
    streams.get(message.id)?.receive(message);
  },
};

function received(message) {
  receivers[message.op]?.(message);
  report();
}

function opened() {
  for (const topic of topics.keys()) ask(topic);
  for (const id of streams.keys()) open(id);
  report();
}

function report() {
  const states = [...topics.values()];
  socket?.report({
    idle: !topics.size && !streams.size,
    waiting: states.some((each) => !each.answered),
    denied: states.find((each) => each.denied)?.denied ?? "",
  });
}

export function start() {
  const url = document.body.dataset.liveUrl;
  if (!url) return;
  document.addEventListener("animationend", (event) => {
    if (event.animationName === "changed") delete event.target.dataset.changed;
  });
  socket = connect(url, { opened, received });
  scan();
  new MutationObserver(scan).observe(document.getElementById("content") ?? document.body, {
    attributeFilter: ["data-live", "data-revision"],
    childList: true,
    subtree: true,
  });
}
