// The keys of every page: / ? g-something j k Enter c Ctrl-Enter Esc. Rows are the rows of the first data-module="rows" table.
const CHORD_MS = 1500;
const PLACES = { o: "", j: "jobs/", q: "queues/", n: "nodes/", e: "events/", a: "audit/" };
let chord = 0;

function typing(target) {
  return (
    target instanceof Element && target.closest("input, textarea, select, [contenteditable], .cm-editor, dialog[open]")
  );
}

function rows() {
  return [...document.querySelectorAll("[data-module=rows] tbody tr")].filter((row) => row.querySelector("a[href]"));
}

function step(by) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
  next.querySelector("a[href]").focus();
  next.scrollIntoView({ block: "nearest" });
}

// Goes to a page by its address below the first one.
function visit(path) {
  location.assign(document.body.dataset.root + path);
}

function help() {
  document.getElementById("help")?.togglePopover();
}

const ACTIONS = {
  "/": () => document.getElementById("filter")?.select(),
  "?": help,
  j: () => step(1),
  k: () => step(-1),
  c: () => visit("jobs/new/"),
  g: () => {
    chord = Date.now();
  },
};

// Takes the button that Enter in a field of the form would take, from any field, a text of many lines too.
function submit(event) {
  const form = typing(event.target) && event.target.closest("form");
  if (!form || event.defaultPrevented) return;
  event.preventDefault();
  form.requestSubmit([...form.elements].find(({ type }) => type === "submit"));
}

function pressed(event) {
  if (event.key === "Escape") {
    if (event.target instanceof HTMLElement && typing(event.target)) event.target.blur();
    return;
  }
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    submit(event);
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (typing(event.target)) return;
  const action = Date.now() - chord < CHORD_MS ? go(event.key) : ACTIONS[event.key];
  chord = 0;
  if (!action) return;
  event.preventDefault();
  action();
}

function go(key) {
  return key in PLACES && (() => visit(PLACES[key]));
}

export function start() {
  document.addEventListener("keydown", pressed);
}
