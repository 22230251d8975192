// A notice at the top of a form: words, in which a number is a moment, and buttons by their names.
import { icon } from "./icon.js";
import { show } from "./time.js";

// Returns what takes the notice away.
export function notice(form, hue, symbol, words, buttons, part = "draft") {
  const element = document.createElement("div");
  element.className = "notice draft-notice";
  Object.assign(element.dataset, { hue, part });
  element.setAttribute("role", hue === "red" ? "alert" : "status");
  const body = document.createElement("div");
  body.className = "notice-body";
  body.append(...words.map((each) => (typeof each === "number" ? moment(each) : each)));
  element.append(icon(symbol), body);
  for (const [name, act] of Object.entries(buttons)) element.append(button(name, act));
  form.prepend(element);
  if (part === "away") element.scrollIntoView({ block: "center" }); // the button that was pressed may be far below
  return () => element.remove();
}

function moment(milliseconds) {
  const element = document.createElement("time");
  element.dateTime = new Date(milliseconds).toISOString();
  show(element);
  return element;
}

function button(name, act) {
  const element = document.createElement("button");
  Object.assign(element, { type: "button", className: "button", textContent: name });
  element.dataset.size = "small";
  element.addEventListener("click", act);
  return element;
}
