// The pieces of the timeline's picture, as SVG elements. Colours are CSS classes; waiting is striped as well.

import { span } from "./time.js";

const NAMESPACE = "http://www.w3.org/2000/svg";
const STEPS = [
  100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000, 7200000,
  21600000, 43200000, 86400000, 172800000, 604800000, 2592000000, 7776000000, 31536000000,
];
const LANE = 22;

// Returns an SVG element; a text child becomes its text.
export function svg(name, attributes, text) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Returns what tells a bar from others: a pod that was evicted and the next of its name are two.
export const keyOf = ([name, , , , , , , , , , uid]) => (uid ? `${name} ${uid}` : name);

// Returns the rule of time above the rows, with a line down at each tick, and the wait that is folded.
export function axis({ width, from, to, scale, each, gap }, height) {
  const wanted = 80 / each;
  const step = STEPS.find((size) => size >= wanted) ?? STEPS.at(-1);
  const found = [stripes(), ...folded(gap, scale, height)];
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
    if (gap && time > gap[0] && time < gap[1]) time = Math.ceil(gap[1] / step) * step;
    const x = scale(time);
    found.push(svg("line", { class: "t-tick", x1: x, x2: x, y1: 18, y2: height }));
    const isHidden = gap && x > scale(gap[0]) - 36 && x < scale(gap[1]);
    if (x < width - 36 && !isHidden) found.push(svg("text", { class: "t-time", x: x + 3, y: 13 }, short(time, step)));
  }
  return found;
}

function folded(gap, scale, height) {
  if (!gap) return [];
  const [x1, x2] = gap.map(scale);
  const middle = { x: (x1 + x2) / 2, y: 13, "text-anchor": "middle" };
  return [
    svg("rect", { class: "t-gap", x: x1, y: 18, width: x2 - x1, height: Math.max(height - 18, 0) }),
    svg("text", { class: "t-time", ...middle }, `⋯ ${span(gap[1] - gap[0])} ⋯`),
  ];
}

function stripes() {
  const defs = svg("defs", {});
  const pattern = svg("pattern", {
    id: "t-stripes",
    width: 6,
    height: 6,
    patternUnits: "userSpaceOnUse",
    patternTransform: "rotate(45)",
  });
  pattern.append(
    svg("rect", { class: "t-stripe-back", width: 6, height: 6 }),
    svg("rect", { class: "t-stripe", width: 2, height: 6 }),
  );
  defs.append(pattern);
  return defs;
}

function short(time, step) {
  if (step < 1000) return `${(time / 1000).toFixed(1)} s`;
  if (time < 60000) return `${Math.round(time / 1000)} s`;
  const minutes = Math.floor(time / 60000);
  if (step < 60000) return `${minutes}:${String(Math.round((time % 60000) / 1000)).padStart(2, "0")}`;
  if (minutes < 120) return `${minutes} min`;
  const hours = time / 3600000;
  return hours < 48 ? `${Number(hours.toFixed(1))} h` : `${Number((hours / 24).toFixed(1))} d`;
}

// Returns one row a pod, under a heading for each lane: those that failed, then each task's others.
export function barRows(data, frame) {
  const row = data.bars.length > 200 ? 6 : data.bars.length > 60 ? 10 : 20;
  const elements = [];
  let [y, lane] = [frame.top, -1];
  data.bars.forEach((bar, index) => {
    if (bar[1] !== lane) {
      lane = bar[1];
      elements.push(...heading(data, lane, frame, y));
      y += LANE;
    }
    elements.push(pod(bar, index, { ...frame, prefix: `${data.job}-`, chosen: keyOf(bar) === frame.chosen }, y, row));
    y += row;
  });
  return { elements, height: y };
}

// Returns one row for what the whole run waited for: its queue, the gang's nodes, its start.
export function waitRow(data, { width, labels, top, scale, present }) {
  if (data.waits.length === 0) return { elements: [], height: top };
  const elements = [svg("text", { class: "t-name", x: 4, y: top + 15 }, "The run")];
  data.waits.forEach(([kind, from, to], index) => {
    const [x1, x2] = [Math.max(scale(from), labels), Math.min(scale(to ?? present), width)];
    if (x2 < labels || x1 > width) return;
    const group = svg("g", { "data-wait": index });
    const size = Math.max(x2 - x1, 1.5);
    group.append(svg("rect", { class: `t-wait-${kind}`, x: x1, y: top + 4, width: size, height: 14, rx: 2 }));
    if (size > 7 * kind.length) group.append(svg("text", { class: "t-wait-text", x: x1 + 4, y: top + 15 }, kind));
    elements.push(group);
  });
  return { elements, height: top + LANE };
}

function heading(data, lane, { width }, y) {
  const [title, shown, total] = data.lanes[lane];
  const counted = shown < total ? `${title} · ${shown} of ${total}` : shown > 1 ? `${title} · ${shown}` : title;
  return [
    svg("line", { class: "t-lane", x1: 0, x2: width, y1: y + 2, y2: y + 2 }),
    svg("text", { class: lane === 0 ? "t-task t-task-failed" : "t-task", x: 4, y: y + 16 }, counted),
  ];
}

function pod([name, , created, scheduled, started, ended, state, code, , runs], index, frame, y, row) {
  const group = svg("g", { "data-row": index, class: frame.chosen ? "t-pod t-chosen" : "t-pod" });
  const { scale, labels, width, present, prefix } = frame;
  const [top, size] = [y + (row > 8 ? 2 : 1), row > 8 ? row - 4 : row - 1];
  group.append(svg("rect", { class: "t-hit", x: 0, y, width, height: row }));
  if (row >= 16)
    group.append(
      svg(
        "text",
        { class: "t-name", x: 12, y: y + row - 6 },
        cut(name.startsWith(prefix) ? name.slice(prefix.length) : name, labels),
      ),
    );
  const end = ended ?? present;
  const segment = (kind, from, to) => {
    if (from === null || to <= from) return;
    const [x1, x2] = [Math.max(scale(from), labels), Math.min(scale(to), width)];
    if (x2 < labels || x1 > width || x2 - x1 <= 0) return;
    group.append(
      svg("rect", { class: `t-${kind}`, x: x1, y: top, width: Math.max(x2 - x1, 1.5), height: size, rx: 2 }),
    );
  };
  segment("waiting", created, scheduled ?? started ?? end);
  segment("starting", scheduled, started ?? end);
  const kind = state === "waiting" || state === "starting" ? "running" : state;
  if (runs.length > 1) {
    segment("back-off", started, end);
    for (const [from, to, failed] of runs) {
      segment(to === null ? kind : failed ? "failed" : "succeeded", from, to ?? end);
    }
  } else segment(kind, started, end);
  const x = scale(end);
  if (state === "failed" && row >= 10 && x >= labels && x <= width) {
    group.append(
      svg(
        "text",
        { class: "t-end", x: Math.min(x + 3, width - 52), y: y + row - 5 },
        row >= 16 && code !== null ? `✕ exit ${code}` : "✕",
      ),
    );
  }
  if (state === "evicted" && row >= 16 && x >= labels && x <= width) {
    const place = { x: Math.min(x + 3, width - 52), y: y + row - 5 };
    group.append(svg("text", { class: "t-end t-end-evicted", ...place }, "evicted"));
  }
  return group;
}

function cut(name, labels) {
  const most = Math.floor((labels - 16) / 6.2);
  return name.length <= most ? name : `…${name.slice(1 - most)}`;
}

// Returns the line at the moment when as many pods as are needed ran; none where they were waited for again, after an eviction.
export function gangLine(data, { scale, labels, width }, height) {
  if (data.met === null || data.needed < 2 || data.waits.some(([, from]) => from > data.met)) return [];
  const x = scale(data.met);
  if (x < labels || x > width) return [];
  const right = x > width - 110;
  return [
    svg("line", { class: "t-met", x1: x, x2: x, y1: 18, y2: height }),
    svg(
      "text",
      {
        class: "t-met-text",
        x: right ? x - 4 : x + 4,
        y: 39,
        "text-anchor": right ? "end" : "start",
      },
      `gang of ${data.needed} runs`,
    ),
  ];
}

// Returns a line for each thing that was done to the whole job; what it was stands in words below the picture.
export function markLines(data, { scale, labels, width }, height) {
  return data.marks.flatMap(([time, message]) => {
    const x = scale(time);
    if (x < labels || x > width) return [];
    const line = svg("line", { class: "t-mark", x1: x, x2: x, y1: 16, y2: height });
    const flag = svg("path", { class: "t-flag", d: `M${x} 16h9l-3 4 3 4h-9z` });
    const both = svg("g", {});
    both.append(svg("title", {}, message), line, flag);
    return [both];
  });
}
