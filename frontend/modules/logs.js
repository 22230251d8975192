// Follows a pod's log over the page's socket: search, wrapping, times, and following the end.

import { stream } from "./live.js";
import { lines as makeLines } from "./logs-lines.js";
import { logAddress } from "./runs.js";

export function mount(root) {
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const { namespace, pod, uid, of, container, attempt } = root.dataset;
  for (const choice of root.querySelectorAll("[data-part=choice]")) {
    choice.addEventListener("change", () => {
      // What belongs to the old pod is not asked of the new one.
      if (!choice.dataset.of) for (const each of root.querySelectorAll("[data-of]")) each.disabled = true;
      choice.form.requestSubmit();
    });
  }
  const known = document.getElementById("log-pods");
  const news = new MutationObserver(changed);
  if (known) news.observe(known, { attributeFilter: ["data-pods", "data-first"] });
  if (!pod) return () => news.disconnect();

  const box = part("text");
  const shown = makeLines(box);
  let place = { next: null, attempt: null };
  let wide = false; // whether the log is read from its beginning
  let stop = () => {};
  part("first").remove();
  part("tools").hidden = false;

  function note(words, action) {
    const line = part("note");
    line.hidden = !words && !action;
    line.replaceChildren(words ?? "");
    if (action) line.append(" ", action);
  }

  function receive(message) {
    if (message.op === "denied") return note(message.message);
    if (message.reason !== undefined && message.reason !== "") note(message.reason);
    if (!message.lines) return undefined;
    const isFirst = place.next === null;
    if (message.lines.length > 0) {
      if (place.attempt !== null && message.attempt !== place.attempt) {
        shown.say(`— attempt ${message.attempt} —`);
      }
      if (!isFirst && message.skipped > 0) shown.say(`— ${size(message.skipped)} were dropped by rotation —`);
      shown.add(message.lines);
      if (isFirst) begin(message);
    }
    if (message.next !== undefined) place = { next: message.next, attempt: message.attempt };
    if (part("find").value) search();
    if (part("follow").checked) bottom();
    return undefined;
  }

  // Pods come and go while somebody reads: the box of names follows, and a pod of the same name is offered.
  function changed() {
    const pods = JSON.parse(known.dataset.pods);
    if (!pod) {
      if (known.dataset.first) location.replace(logAddress(known.dataset.first));
      return;
    }
    const names = part("choice");
    for (const name of Object.keys(pods)) {
      if (![...names.options].some((option) => option.value === name)) names.add(new Option(name, name));
    }
    if (!pods[pod] || pods[pod] === uid) return;
    const link = document.createElement("a");
    Object.assign(link, { href: logAddress(pod), textContent: "Show the new one" });
    note("This pod was replaced by a new one of the same name.", link);
  }

  function begin({ start, skipped }) {
    if (wide && skipped > 0) return note(`The first ${size(skipped)} were dropped by rotation; the newest are kept.`);
    if (start > 0 && !wide) return note(`${size(start)} before this are not shown.`, earlier());
    return note("");
  }

  function earlier() {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "link", textContent: "Show from the beginning" });
    button.addEventListener("click", () => {
      wide = true;
      place = { next: 0, attempt: null };
      shown.clear();
      part("follow").checked = false;
      note("");
      open();
    });
    return button;
  }

  function open() {
    stop();
    stop = stream("pod-log", params, receive);
  }

  function params() {
    const asked = { namespace, pod, uid, of, container, attempt: attempt ?? "" };
    if (place.next !== null) Object.assign(asked, { since: place.next, at: place.attempt ?? "" });
    return asked;
  }

  function bottom() {
    box.scrollTop = box.scrollHeight;
  }

  function scrolled() {
    const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
    // Scrolling up is how people say that they read.
    if (!isAtEnd && part("follow").checked && box.dataset.held !== undefined) part("follow").checked = false;
  }

  function search() {
    const words = part("find").value;
    const { count, more } = shown.find(words);
    part("found").textContent = words ? `${count}${more ? "+" : ""} found` : "";
  }

  const hold = () => {
    box.dataset.held = "";
  };
  for (const name of ["wheel", "touchmove", "keydown", "pointerdown"])
    box.addEventListener(name, hold, { passive: true });
  box.addEventListener("scroll", scrolled, { passive: true });
  part("find").addEventListener("input", search);
  part("find").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    part("follow").checked = false;
    shown.next(event.shiftKey ? -1 : 1);
  });
  part("wrap").addEventListener("change", (event) => box.toggleAttribute("data-wrap", event.target.checked));
  part("times").addEventListener("change", (event) => shown.times(event.target.checked));
  part("follow").addEventListener("change", (event) => {
    delete box.dataset.held;
    if (event.target.checked) bottom();
  });
  open();
  return () => {
    news.disconnect();
    stop();
  };
}

function size(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  const units = ["kB", "MB", "GB"];
  let [value, unit] = [bytes / 1000, 0];
  while (value >= 1000 && unit < 2) [value, unit] = [value / 1000, unit + 1];
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}
