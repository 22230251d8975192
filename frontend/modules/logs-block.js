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

// Draws what has come of a line behind the first of its runs.
export function redraw(block, entry, keep) {
  const row = block.rows.get(entry);
  if (!block.isRich || block.isStale) block.isStale = true;
  else if (row) fill(row, block, entry, keep);
}

// Puts a line's runs into its row, behind those that are kept: each is one node.
function fill(row, block, entry, keep = 0) {
  const words = row.querySelector("[data-words]");
  while (words.childNodes.length > keep) words.lastChild.remove();
  words.append(...entry.runs.slice(keep).map(nodeOf));
  row.querySelector(".log-states")?.remove();
  if (entry.states) row.append(statesOf(block, entry));
}

// Nothing that was printed is markup here: texts are texts, classes are the server's, links are of http and https.
function nodeOf([text, classes, link]) {
  if (!classes && !link) return document.createTextNode(text);
  const made = document.createElement(link ? "a" : "span");
  if (link)
    Object.assign(made, { href: link, target: "_blank", rel: "noopener noreferrer", title: link === text ? "" : link });
  if (classes) made.className = classes;
  made.textContent = text;
  return made;
}

function statesOf(block, { log, offset, states }) {
  const made = document.createElement("a");
  const href = `${block.element.parentElement.dataset.states}&line=${encodeURIComponent(`${log.key}.${offset}`)}`;
  Object.assign(made, { className: "log-states", href, target: "_blank", rel: "noopener noreferrer", tabIndex: -1 });
  made.textContent = states === 1 ? "1 earlier state" : `${states.toLocaleString()} earlier states`;
  return made;
}

function rowOf(block, entry) {
  const row = entry.log.key ? lineRow(entry) : document.createElement("div");
  const words = document.createElement("span");
  words.dataset.words = "";
  row.append(words);
  fill(row, block, entry);
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
  const found = [];
  const small = entry.text.toLowerCase();
  const row = block.rows.get(entry);
  if (!row || small.length !== entry.text.length) return found; // a letter whose small form is longer
  const place = placesIn(row.querySelector("[data-words]"));
  for (let from = small.indexOf(words); from >= 0; from = small.indexOf(words, from + words.length)) {
    const [start, end] = [place(from), place(from + words.length - 1)];
    const [startContainer, endContainer] = [start.node, end.node];
    found.push(new StaticRange({ startContainer, startOffset: start.at, endContainer, endOffset: end.at + 1 }));
  }
  return found;
}

// Returns what says in which text of an element a letter is; it is asked for letters in their order.
function placesIn(element) {
  const texts = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let [node, begin] = [texts.nextNode(), 0];
  return (at) => {
    while (at >= begin + node.length) [begin, node] = [begin + node.length, texts.nextNode()];
    return { node, at: at - begin };
  };
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
