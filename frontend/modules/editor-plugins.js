// The plugins of a job: a choice for each that there is, and the arguments of those that are chosen.
import { place, why } from "./editor-field.js";
import { pathText } from "./editor-node.js";
import { wordList } from "./editor-words.js";
import * as yaml from "./editor-write.js";

// Returns show(plugins). holder has one [data-plugin] for each.
export function pluginList(holder, template, page) {
  const part = (name) => holder.querySelector(`[data-part="${name}"]`);
  const edit = (change) => page.write(change(page.text()));
  const shown = [...holder.querySelectorAll("[data-plugin]")].map(plugin);

  function plugin(element) {
    const name = element.dataset.plugin;
    const box = element.querySelector("input");
    const list = element.querySelector("[data-part=arguments]");
    const words = wordList(list.querySelector(".words"), template, (now) =>
      edit((text) => yaml.writePlugin(text, name, now)),
    );
    const add = list.querySelector("[data-do=add-argument]"); // not of a plugin that knows no arguments
    add?.addEventListener("click", () => words.add());
    box.addEventListener("input", () =>
      edit((text) => (box.checked ? yaml.writePlugin(text, name, []) : yaml.removePlugin(text, name))),
    );
    return (plugins) => {
      const given = plugins.chosen.get(name);
      box.checked = Boolean(given);
      box.disabled = plugins.state === "foreign";
      list.hidden = !given;
      place(box, [...plugins.path, name]);
      words.show(given?.words ?? [], [...plugins.path, name], `Argument of ${name}`);
      if (add) add.disabled = given?.state === "foreign";
      why(element.querySelector("[data-why]"), given?.state === "foreign" ? given.why : "");
    };
  }

  function show(plugins) {
    for (const each of shown) each(plugins);
    why(part("plugins-count"), plugins.chosen.size > 0 ? String(plugins.chosen.size) : "");
    part("plugins-error").dataset.path = pathText(plugins.path);
    why(part("plugins-why"), plugins.state === "foreign" ? plugins.why : "");
  }

  return { show };
}
