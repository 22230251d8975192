// The command of a container in two spellings: one line of a shell, or a list of words.
import { grow, place, why } from "./editor-field.js";
import { wordList } from "./editor-words.js";
import * as yaml from "./editor-write.js";

// Returns show(path, command): the container's path, and its command as editor-pod.js reads it.
export function commandField(element, template, page) {
  const part = (name) => element.querySelector(`[data-part="${name}"]`);
  const act = (name) => element.querySelector(`[data-do="${name}"]`);
  const edit = (change) => page.write(change(page.text()));
  const area = part("line");
  let base = [];
  let shown = null;
  let spelling = ""; // what the reader chose; empty means as the YAML is written

  area.addEventListener("input", () => {
    grow(area, 2);
    edit((text) => yaml.writeLine(text, base, area.value));
  });
  for (const name of ["shell", "words"]) act(name).addEventListener("click", () => choose(name));
  act("to-shell").addEventListener("click", () => {
    spelling = "";
    edit((text) => yaml.writeLine(text, base, yaml.shellLine(allWords())));
  });
  const allWords = () => [...shown.command.words, ...shown.args.words];

  const lists = [...element.querySelectorAll("[data-part=words]")].map((list) => {
    const words = () => shown[list.dataset.list];
    const rows = wordList(list.querySelector(".words"), template, (now) =>
      edit((text) => yaml.writeWords(text, words().path, now)),
    );
    const add = list.querySelector("[data-do=add-word]");
    add.addEventListener("click", () => rows.add());
    return () => {
      rows.show(words().words, words().path, list.dataset.list === "args" ? "Argument" : "Word");
      add.disabled = words().state === "foreign";
    };
  });

  function choose(next) {
    spelling = next;
    show(base, shown);
  }

  function show(path, next) {
    [base, shown] = [path, next];
    const { command, args, mode, line } = shown;
    const chosen = spelling || mode;
    for (const name of ["shell", "words"]) act(name).setAttribute("aria-pressed", String(chosen === name));
    part("shell").hidden = chosen !== "shell";
    part("lists").hidden = chosen !== "words";
    const isOther = chosen === "shell" && mode === "words";
    const text = isOther ? yaml.shellLine(allWords()) : line;
    if (area !== document.activeElement && area.value !== text) area.value = text;
    grow(area, 2);
    area.readOnly = isOther;
    const foreign = [command, args].find((each) => each.state === "foreign");
    act("to-shell").hidden = !isOther || Boolean(foreign);
    for (const showWords of lists) showWords();
    place(element, command.path);
    why(element.querySelector(":scope > [data-why]"), foreign?.why ?? "");
  }

  return { show };
}
