// Draws a job's timeline: one bar a pod with its waiting and running, lanes by task, the moment the gang was met.
// The data comes in data-drawn, which the live page replaces; what runs is drawn anew each second.

import { logAddress } from "./runs.js";
import { clockTime, now, span } from "./time.js";
import { axis, bandRows, barRows, gangLine, markLines, svg, waitRow } from "./timeline-draw.js";

const LABELS = 150;
const TOP = 24;
const WAITS = { queue: "waits for its queue", gang: "waits for the gang's nodes", starting: "the gang starts" };
const END = 56; // room for the words at the end of a pod that failed

export function mount(root) {
  let data = JSON.parse(root.dataset.drawn);
  let window_ = null; // [from, to] in ms since data.zero; null is everything
  let timer = 0;
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
  root.append(tools, box, tip);

  function button(label, text, act) {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", className: "button", textContent: text });
    made.dataset.size = "small";
    made.setAttribute("aria-label", label);
    made.addEventListener("click", act);
    return made;
  }

  const present = () => Math.max(now() - data.zero, 0);
  const isOpen = () =>
    data.waits.some(([, , to]) => to === null) ||
    (data.bars ?? []).some((row) => row[5] === null) ||
    lastCounts().some((row) => row[1] + row[2] > 0);
  const lastCounts = () => (data.bands ?? []).map((points) => points.at(-1) ?? [0, 0, 0, 0, 0]);

  function whole() {
    const ends = (data.bars ?? []).map((row) => row[5] ?? present());
    const points = (data.bands ?? []).map((band) => band.at(-1)?.[0] ?? 0);
    const waited = data.waits.map(([, , to]) => to ?? present());
    const last = Math.max(1000, ...ends, ...points, ...waited, isOpen() ? present() : 0);
    return [0, last * 1.02];
  }

  function draw() {
    const width = Math.max(box.clientWidth, 280);
    const labels = width < 560 ? 84 : LABELS;
    const [from, to] = window_ ?? whole();
    const end = !window_ && data.bars?.some((row) => row[6] === "failed") ? END : 8;
    const scale = (time) => labels + ((time - from) / (to - from)) * (width - labels - end);
    const frame = { width, labels, top: TOP, scale, from, to, present: present() };
    const waits = waitRow(data, frame);
    const below = { ...frame, top: waits.height };
    const rows = data.bands ? bandRows(data, below) : barRows(data, below);
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
    return `Timeline of ${data.pods} pods in ${data.tasks.length} tasks; ${met}. The table of pods says the same in words.`;
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
    const [from, to] = window_ ?? whole();
    const middle = from + (to - from) * at;
    look([middle - (to - from) * factor * at, middle + (to - from) * factor * (1 - at)]);
  }

  function part(event) {
    const { left, width } = box.getBoundingClientRect();
    const labels = width < 560 ? 84 : LABELS;
    return Math.min(Math.max((event.clientX - left - labels) / (width - labels - 8), 0), 1);
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
      ArrowLeft: () => look([from - step, to - step]),
      ArrowRight: () => look([from + step, to + step]),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  function hover(event) {
    const row = data.bars?.[event.target.closest("[data-row]")?.dataset.row];
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

  function about([name, task, created, scheduled, started, ended, state, code, node, runs]) {
    const lines = [`${name} (${data.tasks[task]}): ${state}${code === null ? "" : `, exit code ${code}`}`];
    lines.push(`created ${clockTime(data.zero + created)}`);
    lines.push(scheduled === null ? `has waited ${span(present() - created)}` : `waited ${exact(scheduled - created)}`);
    if (started !== null) lines.push(`ran ${exact((ended ?? present()) - started)}${node ? ` on ${node}` : ""}`);
    if (runs.length > 1) lines.push(`started ${runs.length} times; striped: waits to be started again`);
    return lines.join("\n");
  }

  function open(event) {
    const row = data.bars?.[event.target.closest("[data-row]")?.dataset.row];
    if (row) location.assign(logAddress(row[0]));
  }

  const listeners = { wheel, pointerdown: drag, keydown: keys, pointermove: hover, dblclick: open };
  for (const [name, act] of Object.entries(listeners)) box.addEventListener(name, act, { passive: false });
  box.addEventListener("pointerleave", () => {
    tip.hidden = true;
  });
  const news = new MutationObserver(() => {
    data = JSON.parse(root.dataset.drawn);
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
