// Lists that are newest first, while somebody reads them: new rows are kept behind a line that says how many there are, and
// rows that left the page stay where they are and turn quiet. So nothing moves under the pointer. Rows that are shown change in place.
//
// data-noun="job jobs" on the container of the rows asks for it; the line is [data-part=held] of the same panel.

import { move } from "./morph.js";
import { showAll } from "./time.js";

const GLIDE_MS = 160;
const gliding = new WeakSet(); // containers whose rows are on their way; what comes meanwhile waits for its end
const kept = new WeakMap(); // container -> { order, rows: Map of what is not shown yet }

function panelOf(container) {
  return container.closest(".table-panel");
}

function isRead(container) {
  const panel = panelOf(container);
  if (!panel || !container.dataset.noun) return false;
  return Boolean(
    container.querySelector("input[type=checkbox]:checked, [data-chosen]") ||
      panel.matches(":hover") ||
      panel.contains(document.activeElement) ||
      container.getBoundingClientRect().top < 0,
  );
}

// Whether the rows that are shown would stay where they are, others coming behind them.
function isCalm(container, order) {
  return [...container.children].every((child, index) => child.id === order[index]);
}

function tops(container) {
  return new Map([...container.children].map((child) => [child, child.getBoundingClientRect().top]));
}

// Lets rows glide from where they were: what jumps is lost from sight. The transform is written for each frame, since of
// an animation of its own the browser says that it moved the layout.
function glide(container, before) {
  if (document.hidden || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const moved = [];
  for (const [row, top] of tops(container)) {
    const was = before.get(row);
    if (was !== undefined && was !== top && (was < innerHeight || top < innerHeight)) moved.push([row, was - top]);
  }
  if (!moved.length) return;
  let began = 0;
  let left = 1;
  function draw(now) {
    const isOver = !left;
    // In the first frame that is painted every row is still where it was, in the last but one where it is to be.
    began ||= now;
    left = Math.max(1 - (now - began) / GLIDE_MS, 0) ** 2;
    for (const [row, way] of moved) row.style.transform = isOver ? "" : `translateY(${way * left}px)`;
    if (!isOver) {
      requestAnimationFrame(draw);
    } else {
      gliding.delete(container);
      settle(container);
    }
  }
  gliding.add(container);
  draw(0);
}

function arrange(container, order, rows) {
  const wanted = new Set(order);
  const before = tops(container);
  for (const child of [...container.children]) {
    if (!wanted.has(child.id)) child.remove();
    else delete child.dataset.left;
  }
  let at = container.firstElementChild;
  for (const id of order) {
    const child = document.getElementById(id) ?? rows.get(id);
    if (!child) continue;
    const isNew = !child.isConnected;
    if (child === at) at = at.nextElementSibling;
    else move(container, child, at);
    if (isNew) {
      showAll(child);
      globalThis.htmx?.process(child);
    }
  }
  if (before.size) glide(container, before);
}

function said(container, { order }) {
  const [one, many] = container.dataset.noun.split(" ");
  const fresh = order.filter((id) => !document.getElementById(id)).length;
  if (!fresh) return "The list has changed – show";
  return `${fresh} new ${fresh === 1 ? one : many} – show`;
}

function line(container) {
  return panelOf(container)?.querySelector("[data-part=held]");
}

function button(container) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "button";
  made.dataset.size = "small";
  made.addEventListener("click", (event) => {
    release(container);
    // Who pressed it with the keyboard goes on in the list.
    if (!event.detail) container.querySelector("a[href]")?.focus({ preventScroll: true });
    panelOf(container).scrollIntoView({ block: "nearest" });
  });
  line(container).replaceChildren(made);
  return made;
}

function keepBack(container, held) {
  const wanted = new Set(held.order);
  for (const child of container.children) {
    if (wanted.has(child.id)) delete child.dataset.left;
    else child.dataset.left = "";
  }
  const shown = line(container).querySelector("button") ?? button(container);
  const text = said(container, held);
  if (shown.textContent !== text) shown.textContent = text;
  panelOf(container).addEventListener("pointerleave", () => settle(container), { once: true });
}

function release(container) {
  const held = kept.get(container);
  if (!held || gliding.has(container)) return;
  kept.delete(container);
  line(container)?.replaceChildren();
  arrange(container, held.order, held.rows);
}

// Shows what is kept back, unless somebody reads the list and it would move.
function settle(container) {
  const held = kept.get(container);
  if (!held || gliding.has(container)) return;
  if (isRead(container) && !isCalm(container, held.order)) keepBack(container, held);
  else release(container);
}

// Brings the rows of a container into an order, of which some may be among the new ones; or keeps them back for now.
export function order(container, wanted, fresh) {
  const held = kept.get(container);
  if (!wanted && !held) return;
  kept.set(container, {
    order: wanted ?? held.order,
    rows: new Map([...(held?.rows ?? []), ...fresh]),
  });
  settle(container);
}
