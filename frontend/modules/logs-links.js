// Links to lines of logs: a click on the time of a line, or Enter, marks the line and writes its link into the address.
// One line at a time can be reached with Tab; from there the arrow keys go from line to line.

import { keyOf } from "./logs-lines.js";

// button copies the link; chosen() is told when a reader has chosen a line. Returns forget, which leaves the address without one.
export function links({ place, box, shown, button, chosen }) {
  const said = button.querySelector("[data-says]");
  const usual = said.textContent;

  function write(key) {
    const address = new URL(location.href);
    const { pod, uid, container, attempt } = place;
    const named = { pod, uid, container, attempt, run: key ? place.chapter : place.run, line: key };
    for (const [name, value] of Object.entries(named)) {
      if (value) address.searchParams.set(name, value);
      else address.searchParams.delete(name);
    }
    history.replaceState(history.state, "", address);
    button.hidden = !key;
  }

  function choose(entry) {
    shown.mark(entry);
    write(keyOf(entry));
    said.textContent = usual;
    chosen();
    focus(entry);
  }

  async function copy() {
    try {
      await navigator.clipboard.writeText(location.href);
      said.textContent = "Copied";
    } catch {
      said.textContent = "The link is in the address bar";
    }
  }

  function tabTo(row) {
    const old = box.querySelector('.log-at[tabindex="0"]');
    if (old) old.tabIndex = -1;
    row.querySelector(".log-at").tabIndex = 0;
  }

  function focus(entry) {
    const row = shown.rowOf(entry);
    tabTo(row);
    row.querySelector(".log-at").focus();
  }

  function firstSeen() {
    const { left, top } = box.getBoundingClientRect();
    return document.elementFromPoint(left + 16, top + 20)?.closest(".log-line") ?? box.querySelector(".log-line");
  }

  function pressed(event) {
    if (event.key === "Tab" && !event.shiftKey && event.target === box) {
      const row = firstSeen();
      if (row) tabTo(row);
      return;
    }
    const row = event.target.closest(".log-line");
    const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    const next = row && step && shown.beside(shown.entryOf(row), step);
    if (!next) return;
    event.preventDefault();
    focus(next);
  }

  box.addEventListener("keydown", pressed);
  box.addEventListener("click", ({ target }) => {
    const row = target.closest(".log-at")?.closest(".log-line");
    if (row) choose(shown.entryOf(row));
  });
  button.addEventListener("click", copy);
  return { forget: () => write("") };
}
