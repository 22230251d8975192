// A list of words with a row for each: a command, its arguments, the arguments of a plugin.
import { grow, place } from "./editor-field.js";

// Fills holder with rows. write(words) hears each change. Returns show(words, path, label) and add().
export function wordList(holder, template, write) {
  let words = [];

  function change(make) {
    const now = [...words];
    make(now);
    write(now);
  }

  function row(index) {
    const made = template("word");
    const area = made.querySelector("textarea");
    area.addEventListener("input", () => {
      grow(area);
      change((now) => now.splice(index, 1, area.value));
    });
    made.querySelector("[data-do=remove-word]").addEventListener("click", () => change((now) => now.splice(index, 1)));
    return made;
  }

  function show(next, path, label) {
    words = next;
    while (holder.children.length > words.length) holder.lastElementChild.remove();
    while (holder.children.length < words.length) holder.append(row(holder.children.length));
    words.forEach((value, index) => {
      const area = holder.children[index].querySelector("textarea");
      if (area !== document.activeElement && area.value !== value) area.value = value;
      grow(area);
      area.setAttribute("aria-label", `${label} ${index + 1}`);
      place(area, [...path, index]);
    });
  }

  function add() {
    write([...words, ""]);
    holder.lastElementChild?.querySelector("textarea").focus();
  }

  return { show, add };
}
