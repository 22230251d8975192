// The lines of a log on the page. Lines are text in blocks of 200, and the browser lays out only the blocks
// that are seen (content-visibility), so that 100,000 lines scroll like 100. Older blocks than that are dropped.

const BLOCK = 200;
const MOST_BLOCKS = 500;
const MOST_FOUND = 1000;

// Returns add, say, clear, times, find and next for the lines inside box.
export function lines(box) {
  const blocks = []; // { element, text, entries: [[time, stream, text]] }
  let withTimes = false;
  let open = false; // the last line goes on in the next piece
  let dropped = 0;
  let [wanted, found, at] = ["", [], -1];

  function block() {
    const last = blocks.at(-1);
    if (last && last.entries.length < BLOCK) return last;
    const element = document.createElement("div");
    element.className = "log-block";
    const made = { element, entries: [] };
    blocks.push(made);
    box.append(element);
    if (blocks.length > MOST_BLOCKS) forget();
    return made;
  }

  function forget() {
    const gone = blocks.shift();
    gone.element.remove();
    dropped += gone.entries.length;
    let said = box.querySelector(".log-dropped");
    if (!said) {
      said = document.createElement("p");
      said.className = "log-dropped soft small";
      box.prepend(said);
    }
    said.textContent = `${dropped.toLocaleString()} older lines left the page to keep it quick; the download has them all.`;
  }

  function draw(one) {
    const text = one.entries.map(([time, , line]) => (withTimes && time ? `${local(time)}  ${line}` : line)).join("\n");
    one.element.textContent = `${text}\n`;
    one.element.style.setProperty("--lines", one.entries.length);
  }

  function add(entries) {
    const touched = new Set();
    for (const [time, stream, text, whole] of entries) {
      const one = open ? blocks.at(-1) : block();
      if (open) one.entries.at(-1)[2] += text;
      else one.entries.push([time, stream, text]);
      open = !whole;
      touched.add(one);
    }
    touched.forEach(draw);
  }

  function say(words) {
    open = false;
    add([["", "", words, true]]);
  }

  function clear() {
    blocks.length = 0;
    [dropped, open] = [0, false];
    box.replaceChildren();
  }

  function times(isOn) {
    withTimes = isOn;
    blocks.forEach(draw);
    find(wanted);
  }

  // Marks where words stand, without touching the text, and counts them.
  function find(words) {
    wanted = words;
    found = [];
    const small = words.toLowerCase();
    for (const { element } of small ? blocks : []) {
      const node = element.firstChild;
      const text = node?.data.toLowerCase() ?? "";
      for (let from = text.indexOf(small); from >= 0; from = text.indexOf(small, from + small.length)) {
        if (found.length >= MOST_FOUND) break;
        const range = new Range();
        range.setStart(node, from);
        range.setEnd(node, from + small.length);
        found.push(range);
      }
    }
    at = -1;
    paint();
    return { count: found.length, more: found.length >= MOST_FOUND };
  }

  function paint() {
    if (!globalThis.Highlight) return;
    CSS.highlights.set("log-found", new Highlight(...found));
    CSS.highlights.set("log-chosen", new Highlight(...(found[at] ? [found[at]] : [])));
  }

  function next(step) {
    if (found.length === 0) return;
    at = (at + step + found.length) % found.length;
    paint();
    found[at].startContainer.parentElement.scrollIntoView({ block: "nearest" });
    const { top, bottom } = found[at].getBoundingClientRect();
    const view = box.getBoundingClientRect();
    if (top < view.top || bottom > view.bottom) box.scrollTop += top - view.top - view.height / 2;
  }

  return { add, say, clear, times, find, next };
}

function local(time) {
  const moment = new Date(time);
  if (Number.isNaN(moment.getTime())) return time;
  return `${moment.toLocaleTimeString(undefined, { hour12: false })}.${String(moment.getMilliseconds()).padStart(3, "0")}`;
}
