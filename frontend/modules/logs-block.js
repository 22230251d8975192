// A stretch of about 200 lines on the page. Only a block that is seen, or nearly, has elements for its lines; elsewhere
// it is plain text, which costs little and which the browser's own search still finds.

// Returns a new block at the end of box, drawn as its entries are once draw() is called.
export function makeBlock(box) {
  const element = document.createElement("div");
  element.className = "log-block";
  box.append(element);
  return { element, entries: [], rows: new Map(), isSeen: false, isRich: false, isStale: true };
}

// Draws a block: with elements for its lines where isRich, else as text. Who is at a line with the keyboard stays there.
export function draw(block, isRich) {
  const { element, entries, rows } = block;
  const held = [...rows].find(([, row]) => row.contains(document.activeElement))?.[0];
  const shown = entries.filter((entry) => entry.isShown);
  Object.assign(block, { isRich, isStale: false });
  rows.clear();
  element.style.setProperty("--lines", shown.length);
  if (!isRich) {
    element.textContent = shown.map(({ log, text }) => `${log.label ? `${log.label} ` : ""}${text}\n`).join("");
    return;
  }
  element.replaceChildren(...shown.map((entry) => rowOf(block, entry)));
  if (held) rows.get(held)?.querySelector(".log-at").focus({ preventScroll: true });
}

// Adds a line to the end of a block that has elements.
export function append(block, entry) {
  block.element.append(rowOf(block, entry));
  block.element.style.setProperty("--lines", block.rows.size);
}

function rowOf(block, entry) {
  const row = entry.log.key ? lineRow(entry) : document.createElement("div");
  row.append(document.createTextNode(entry.text));
  if (!entry.log.key) row.className = "log-says";
  if (entry.isMarked) row.setAttribute("aria-current", "location");
  block.rows.set(entry, row);
  return row;
}

function lineRow({ log, time }) {
  const row = document.createElement("div");
  row.className = "log-line";
  const at = document.createElement("button");
  Object.assign(at, { type: "button", className: "log-at", tabIndex: -1, textContent: local(time) });
  row.append(at);
  if (log.label) {
    const pod = document.createElement("b");
    pod.className = "log-pod";
    pod.dataset.hue = log.hue;
    pod.textContent = log.label;
    row.append(pod, " ");
  }
  return row;
}

// Returns where words stand in a line that has an element, for the browser to mark.
export function ranges(block, entry, words) {
  const node = block.rows.get(entry)?.lastChild;
  const found = [];
  const small = entry.text.toLowerCase();
  for (let from = small.indexOf(words); node && from >= 0; from = small.indexOf(words, from + words.length)) {
    const [startOffset, endOffset] = [from, from + words.length];
    if (endOffset > node.length) break; // a letter whose small form is longer
    found.push(new StaticRange({ startContainer: node, startOffset, endContainer: node, endOffset }));
  }
  return found;
}

// The clock's time in the reader's zone. Most lines were printed in the second of the line before.
let [second, clock] = ["", ""];
function local(time) {
  if (time.slice(0, 19) !== second) {
    const moment = new Date(time);
    if (Number.isNaN(moment.getTime())) return time;
    second = time.slice(0, 19);
    clock = moment.toLocaleTimeString(undefined, { hour12: false });
  }
  return `${clock}.${time.slice(20, 23)}`;
}
