// The lines of logs on the page, in the order of their times. Lines that are older than the newest MOST leave the page,
// so its memory is bounded.

import { append, draw, makeBlock, ranges, redraw } from "./logs-block.js";

const BLOCK = 200;
const MOST = 30000;
const NEAR = "600px"; // how far from what is seen lines have elements
const NOBODY = { uid: "", key: "" };

const textOf = (runs) => runs.map(([text]) => text).join("");
export const keyOf = ({ log, offset }) => `${log.key}.${offset}`;

// Returns what adds, hides, finds and marks lines inside box. What was added or chosen is seen after show().
// isRead() says whether somebody reads, so that lines that leave the page must not move the others.
export function lines(box, isRead) {
  const blocks = [];
  const open = new Map(); // log and stream -> the entry that goes on in the next piece
  const hidden = new Set(); // uids of pods
  let [count, dropped, hits] = [0, 0, 0];
  let [wanted, only, chosen, marked] = ["", false, null, null];
  const seen = new IntersectionObserver(moved, { root: box, rootMargin: NEAR });

  function moved(changes) {
    for (const { target, isIntersecting } of changes) {
      const block = blocks.find(({ element }) => element === target);
      if (block) block.isSeen = isIntersecting;
    }
    show();
  }

  function lastBlock() {
    const last = blocks.at(-1);
    if (last && last.entries.length < BLOCK) return last;
    const made = makeBlock(box);
    blocks.push(made);
    seen.observe(made.element);
    return made;
  }

  function forget() {
    const { element, entries } = blocks.shift();
    const height = isRead() ? element.offsetHeight : 0;
    seen.unobserve(element);
    element.remove();
    if (height) box.scrollTop -= height;
    const left = entries.filter(({ log }) => log.key);
    count -= left.length;
    dropped += left.length;
    hits -= left.filter(({ isHit }) => isHit).length;
  }

  // Adds a line where its time belongs, behind what its pod has printed before; one that goes on keeps its place and the
  // first of its runs.
  function add(log, { time, stream, runs, isWhole, offset, keep, states }) {
    let entry = open.get(stream);
    if (entry) goOn(entry, keep, runs, states);
    else {
      entry = { log, time, runs, text: textOf(runs), states, offset, block: null };
      judge(entry);
      insert(entry);
      count += 1;
    }
    if (isWhole) open.delete(stream);
    else open.set(stream, entry);
    if (count > MOST + BLOCK) forget();
  }

  function goOn(entry, keep, runs, states) {
    const { isShown } = entry;
    entry.runs = [...entry.runs.slice(0, keep), ...runs];
    Object.assign(entry, { text: textOf(entry.runs), states });
    judge(entry);
    if (entry.isShown !== isShown) entry.block.isStale = true;
    else redraw(entry.block, entry, keep);
  }

  const underWay = () => [...open.values()].map(keyOf).join();

  // Says something between the lines, at the end or where a moment belongs.
  function say(text, time = "") {
    const moment = time || (blocks.at(-1)?.entries.at(-1).time ?? "");
    insert({ log: NOBODY, time: moment, text, runs: [[text]], offset: 0, isShown: true, block: null });
  }

  function insert(entry) {
    let [at, index] = [blocks.length - 1, blocks.at(-1)?.entries.length ?? 0];
    while (at >= 0) {
      const before = blocks[at].entries[index - 1];
      if (before && (before.time <= entry.time || before.log.uid === entry.log.uid)) break;
      if (before) index -= 1;
      else if (at === 0) break;
      else index = blocks[--at].entries.length;
    }
    const isLast = at < 0 || (at === blocks.length - 1 && index === blocks[at].entries.length);
    entry.block = isLast ? lastBlock() : blocks[at];
    if (isLast) entry.block.entries.push(entry);
    else entry.block.entries.splice(index, 0, entry);
    if (!isLast || !entry.block.isRich || entry.block.isStale) entry.block.isStale = true;
    else if (entry.isShown) append(entry.block, entry);
  }

  // Decides whether a line is seen, and whether the wanted words are in it.
  function judge(entry) {
    if (!entry.log.key) return;
    const isHit = wanted !== "" && entry.text.toLowerCase().includes(wanted);
    hits += Number(isHit) - Number(Boolean(entry.isHit));
    entry.isHit = isHit;
    entry.isShown = !hidden.has(entry.log.uid) && (isHit || !only || wanted === "");
  }

  function judgeAll() {
    for (const block of blocks) {
      block.entries.forEach(judge);
      block.isStale = true;
    }
    show();
  }

  // Draws what has changed. The end has elements at once, because most readers follow it.
  function show() {
    for (const [index, block] of blocks.entries()) {
      const isRich = block.isSeen || index >= blocks.length - 2 || block.element.contains(document.activeElement);
      if (block.isStale || isRich !== block.isRich) draw(block, isRich);
    }
    paint();
  }

  function paint() {
    if (!globalThis.Highlight) return;
    const found = new Highlight();
    const current = new Highlight();
    for (const block of wanted ? blocks : []) {
      for (const entry of block.rows.keys()) {
        if (!entry.isHit) continue;
        for (const range of ranges(block, entry, wanted)) (entry === chosen ? current : found).add(range);
      }
    }
    CSS.highlights.set("log-found", found);
    CSS.highlights.set("log-chosen", current);
  }

  const all = () => blocks.flatMap(({ entries }) => entries);
  const isLine = ({ log, isShown }) => log.key && isShown;

  // Says which words are wanted, and whether only lines with them are seen; judgeAll() then acts upon it.
  function find(words, onlyThese) {
    [wanted, only, chosen] = [words.toLowerCase(), onlyThese, null];
  }

  // Goes to the next line, or the one before, that has the wanted words.
  function next(step) {
    const found = all().filter((entry) => isLine(entry) && entry.isHit);
    if (!found.length) return;
    const at = chosen ? found.indexOf(chosen) : step > 0 ? -1 : 0;
    chosen = found[(at + step + found.length) % found.length];
    reveal(chosen);
  }

  // Returns the element of a line, which is made if it has none.
  function rowOf(entry) {
    const { block } = entry;
    if (!block.isRich || block.isStale) draw(block, true);
    return block.rows.get(entry);
  }

  function entryOf(row) {
    const block = blocks.find(({ element }) => element === row.parentElement);
    return block && [...block.rows].find(([, each]) => each === row)?.[0];
  }

  // Returns the seen line beside one, before it or behind it.
  function beside(entry, step) {
    const found = all().filter(isLine);
    return found[found.indexOf(entry) + step];
  }

  function mark(entry) {
    for (const [each, isMarked] of [
      [marked, false],
      [entry, true],
    ]) {
      if (!each) continue;
      each.isMarked = isMarked;
      each.block.isStale = true;
    }
    marked = entry;
    show();
  }

  // Scrolls a line to the middle. Blocks that were never drawn get their true height on the way, so it looks twice.
  function reveal(entry) {
    rowOf(entry)?.scrollIntoView({ block: "center" });
    paint();
    requestAnimationFrame(() => {
      rowOf(entry)?.scrollIntoView({ block: "center" });
      paint();
    });
  }

  function clear() {
    seen.disconnect();
    blocks.length = 0;
    open.clear();
    [count, dropped, hits, chosen, marked] = [0, 0, 0, null, null];
    box.replaceChildren();
    paint();
  }

  function hide(uid, isHidden) {
    if (isHidden) hidden.add(uid);
    else hidden.delete(uid);
  }

  const first = () => all().find(({ log }) => log.key);
  const last = () => all().findLast(({ log }) => log.key);
  const byKey = (key) => all().find((entry) => entry.log.key && keyOf(entry) === key);
  const numbers = () => ({ count, dropped, hits });
  return {
    add,
    underWay,
    say,
    show,
    clear,
    hide,
    judgeAll,
    find,
    next,
    rowOf,
    entryOf,
    beside,
    byKey,
    mark,
    reveal,
    first,
    last,
    numbers,
  };
}
