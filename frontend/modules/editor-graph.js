// The order of a job's tasks as a small graph: a column for each step, and an arrow from each task to those that wait for it.
import { layout, sentence } from "./editor-graph-layout.js";

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Returns show(tasks), the tasks of a view. holder has the words and the place of the drawing, and is hidden without an order.
export function orderGraph(holder) {
  const [words, drawing] = ["order-words", "order-drawing"].map((name) => holder.querySelector(`[data-part=${name}]`));
  let drawn = "";

  function show(tasks) {
    const order = tasks.map(({ name, dependsOn: { names, iteration } }, index) => ({
      name: name.text || `task ${index + 1}`,
      waitsFor: names.words,
      isAny: iteration.text === "any",
    }));
    holder.hidden = order.every((task) => task.waitsFor.length === 0);
    const now = JSON.stringify(order);
    if (now === drawn) return;
    drawn = now;
    words.textContent = order.map(sentence).join(" ");
    drawing.replaceChildren(picture(layout(order)));
  }

  return { show };
}

function picture({ width, height, boxes, lines }) {
  const tip = shape("path", { class: "graph-tip", d: "M0 0L8 4L0 8z" });
  const marker = {
    id: "order-tip",
    viewBox: "0 0 8 8",
    refX: 2,
    refY: 4,
    markerWidth: 7,
    markerHeight: 7,
    orient: "auto",
  };
  return shape(
    "svg",
    { class: "graph", width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    shape("defs", {}, shape("marker", marker, tip)),
    ...lines.map(({ d, isAny }) =>
      shape("path", {
        class: "graph-line",
        d,
        "marker-end": "url(#order-tip)",
        ...(isAny && { "stroke-dasharray": "4 3" }),
      }),
    ),
    ...boxes.map(box),
  );
}

function box({ name, x, y, width, height }) {
  const said = name.length > 16 ? `${name.slice(0, 15)}…` : name;
  return shape(
    "g",
    { class: "graph-node" },
    shape("rect", { x, y, width, height, rx: 6 }),
    shape("text", { x: x + 10, y: y + height / 2 + 4 }, said),
  );
}
