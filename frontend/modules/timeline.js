// Draws a job's timeline: one bar a pod with its waiting and running, pods that failed first, then lanes by task, and
// the moment the gang was met. A click chooses a pod, whose log is a click away. The data comes in data-drawn, which
// the live page replaces; what runs is drawn anew each second.

import { logAddress } from "./runs.js";
import { clockTime, now, span } from "./time.js";
import { axis, barRows, gangLine, keyOf, markLines, svg, waitRow } from "./timeline-draw.js";
import { quiet, scaleOf } from "./timeline-scale.js";

const LABELS = 150;
const TOP = 24;
const WAITS = { queue: "waits for its queue", gang: "waits for the gang's nodes", starting: "the gang starts" };
const END = 56; // room for the words at the end of a pod that failed or was evicted
const WORDED = ["failed", "evicted"];
const MARGIN = 0.02; // after the last moment, of the time that is drawn
const STILL = 4; // pixels that a click may move by

export function mount(root) {
  let data = JSON.parse(root.dataset.drawn);
  let window_ = null; // [from, to] in ms since data.zero; null is everything
  let timer = 0;
  let chosen = ""; // the key of the pod that was clicked
  let scale = null;
  const box = document.createElement("div");
  const tools = document.createElement("div");
  const tip = document.createElement("div");
  Object.assign(box, { className: "timeline-box", tabIndex: 0 });
  box.setAttribute("aria-label", "Picture of the timeline");
  tools.className = "timeline-tools";
  Object.assign(tip, { className: "timeline-tip", hidden: true });
  tools.append(
    button("Closer", "+", () => zoom(0.5)),
    button("Wider", "−", () => zoom(2)),
    button("All of the time", "All", () => look(null)),
  );
  const about_ = document.createElement("p");
  Object.assign(about_, { className: "timeline-chosen small", hidden: true });
  about_.setAttribute("aria-live", "polite");
  keepRoom();
  root.replaceChildren(tools, box, about_, tip); // in place of what kept their room

  function button(label, text, act) {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", className: "button", textContent: text });
    made.dataset.size = "small";
    made.setAttribute("aria-label", label);
    made.addEventListener("click", act);
    return made;
  }

  function keepRoom() {
    box.style.minHeight = `${data.room ?? 0}px`;
  }

  const present = () => Math.max(now() - data.zero, 0);
  const isOpen = () => data.waits.some(([, , to]) => to === null) || data.bars.some((row) => row[5] === null);

  function whole() {
    const ends = data.bars.map((row) => row[5] ?? present());
    const waited = data.waits.map(([, , to]) => to ?? present());
    const last = Math.max(1000, ...ends, ...waited, isOpen() ? present() : 0);
    const [opens, closes] = quiet(data, [0, last]) ?? [0, 0];
    return [0, last + (last - (closes - opens)) * MARGIN];
  }

  function draw() {
    const width = Math.max(box.clientWidth, 280);
    const labels = width < 560 ? 84 : LABELS;
    const [from, to] = window_ ?? whole();
    const end = !window_ && data.bars.some((row) => WORDED.includes(row[6])) ? END : 8;
    const gap = window_ ? null : quiet(data, [from, to]);
    scale = { ...scaleOf([from, to], labels, width - end, gap), gap, left: labels, right: width - end };
    const drawn = { from, to, gap, each: scale.each, scale: scale.x };
    const frame = { width, labels, top: TOP, present: present(), chosen, ...drawn };
    const waits = waitRow(data, frame);
    const rows = barRows(data, { ...frame, top: waits.height });
    const height = rows.height + 6;
    const picture = svg("svg", {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": words(),
    });
    picture.append(
      ...axis(frame, height),
      ...waits.elements,
      ...rows.elements,
      ...gangLine(data, frame, height),
      ...markLines(data, frame, height),
    );
    box.replaceChildren(picture);
    clearTimeout(timer);
    if (isOpen()) timer = setTimeout(() => requestAnimationFrame(draw), 1000);
  }

  function words() {
    const met =
      data.met === null ? "the gang is not met yet" : `the gang of ${data.needed} was met after ${span(data.met)}`;
    return `Timeline of ${data.bars.length} pods; ${met}. The table of pods says the same in words.`;
  }

  function look(next) {
    const [, end] = whole();
    if (next) {
      const size = Math.min(Math.max(next[1] - next[0], 100), end);
      const from = Math.min(Math.max(next[0], 0), end - size);
      window_ = size >= end ? null : [from, from + size];
    } else {
      window_ = null;
    }
    draw();
  }

  function zoom(factor, at = 0.5) {
    if (!window_ && factor > 1) return;
    const [from, to] = window_ ?? whole();
    const folded = scale.gap ? scale.gap[1] - scale.gap[0] : 0;
    const size = (to - from - folded) * factor;
    const middle = scale.time(scale.left + (scale.right - scale.left) * at);
    // The first look closer leaves out what is folded.
    const begun = Math.max(middle - size * at, scale.gap ? scale.gap[1] - size * 0.1 : 0);
    look([begun, begun + size]);
  }

  function part(event) {
    const x = event.clientX - box.getBoundingClientRect().left;
    return Math.min(Math.max((x - scale.left) / (scale.right - scale.left), 0), 1);
  }

  function wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 0.8 : 1.25, part(event));
  }

  function drag(event) {
    if (event.button !== 0 || !window_) return;
    const [start, [from, to]] = [part(event), window_];
    const move = (moved) => {
      const by = (start - part(moved)) * (to - from);
      look([from + by, to + by]);
    };
    const end = () => {
      box.removeEventListener("pointermove", move);
      box.removeEventListener("pointerup", end);
      box.removeEventListener("pointercancel", end);
    };
    box.addEventListener("pointermove", move);
    box.addEventListener("pointerup", end);
    box.addEventListener("pointercancel", end);
  }

  function keys(event) {
    const [from, to] = window_ ?? whole();
    const step = (to - from) / 8;
    const act = {
      "+": () => zoom(0.5),
      "-": () => zoom(2),
      0: () => look(null),
      ArrowDown: () => choose(data.bars[next(1)]),
      ArrowUp: () => choose(data.bars[next(-1)]),
      Enter: () => open_(data.bars.find((row) => keyOf(row) === chosen)),
      ArrowLeft: () => look([from - step, to - step]),
      ArrowRight: () => look([from + step, to + step]),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  function hover(event) {
    const row = rowAt(event);
    const wait = data.waits[event.target.closest("[data-wait]")?.dataset.wait];
    tip.hidden = !row && !wait;
    if (tip.hidden) return;
    tip.textContent = row ? about(row) : aboutWait(wait);
    const { left, top, width } = root.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX - left + 12, Math.max(width - tip.offsetWidth - 4, 0))}px`;
    tip.style.top = `${event.clientY - top + 14}px`;
  }

  function aboutWait([kind, from, to]) {
    return `${WAITS[kind]}: ${to === null ? `${span(present() - from)} so far` : exact(to - from)}`;
  }

  function about([name, , created, scheduled, started, ended, state, code, node, runs, , why]) {
    const lines = [`${name}: ${state}${why ? ` ${why}` : ""}${code === null ? "" : `, exit code ${code}`}`];
    lines.push(`created ${clockTime(data.zero + created)}`);
    lines.push(scheduled === null ? `has waited ${span(present() - created)}` : `waited ${exact(scheduled - created)}`);
    if (started !== null) lines.push(`ran ${exact((ended ?? present()) - started)}${node ? ` on ${node}` : ""}`);
    if (runs.length > 1) lines.push(`started ${runs.length} times; striped: waits to be started again`);
    return lines.join("\n");
  }

  const rowAt = (event) => data.bars[event.target.closest("[data-row]")?.dataset.row];

  function next(step) {
    const index = data.bars.findIndex((row) => keyOf(row) === chosen);
    return Math.min(Math.max(index < 0 ? 0 : index + step, 0), data.bars.length - 1);
  }

  function choose(row) {
    if (!row) return;
    chosen = keyOf(row);
    tellChosen();
    // Not drawn anew: a second click has to meet the same bar.
    box.querySelector(".t-chosen")?.classList.remove("t-chosen");
    const bar = box.querySelector(`[data-row="${data.bars.indexOf(row)}"]`);
    bar.classList.add("t-chosen");
    bar.scrollIntoView({ block: "nearest" });
  }

  function tellChosen() {
    const row = data.bars.find((each) => keyOf(each) === chosen);
    about_.hidden = !row;
    if (!row) return;
    const log = document.createElement("a");
    Object.assign(log, { href: logAddress(row[0], row[10]), textContent: "Open its log" });
    about_.replaceChildren(`${about(row).replaceAll("\n", " · ")} · `, log);
  }

  const open_ = (row) => row && location.assign(logAddress(row[0], row[10]));

  // Where the pointer went down, as who drags does not choose, and on which row: what is there may be drawn anew before it
  // goes up, and then there is no click.
  let pressed = { x: 0 };
  const press = (event) => {
    const row = rowAt(event);
    pressed = { x: event.clientX, key: row && keyOf(row) };
    drag(event);
  };
  const release = (event) => {
    if (event.button !== 0 || Math.abs(event.clientX - pressed.x) > STILL) return;
    choose(data.bars.find((row) => keyOf(row) === pressed.key));
  };
  const click = (event) => event.detail === 0 && choose(rowAt(event)); // without a pointer, as screen readers click
  const open = (event) => open_(rowAt(event));
  const listeners = {
    wheel,
    pointerdown: press,
    pointerup: release,
    keydown: keys,
    pointermove: hover,
    click,
    dblclick: open,
  };
  for (const [name, act] of Object.entries(listeners)) box.addEventListener(name, act, { passive: false });
  box.addEventListener("pointerleave", () => {
    tip.hidden = true;
  });
  const news = new MutationObserver(() => {
    data = JSON.parse(root.dataset.drawn);
    keepRoom();
    tellChosen();
    draw();
  });
  news.observe(root, { attributeFilter: ["data-drawn"] });
  const size = new ResizeObserver(() => draw());
  size.observe(box);
  return () => {
    clearTimeout(timer);
    news.disconnect();
    size.disconnect();
  };
}

function exact(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  return milliseconds < 10000 ? `${(milliseconds / 1000).toFixed(1)} s` : span(milliseconds);
}
