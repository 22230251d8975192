// Short answers in the corner: those that the server wrote, and toast() for modules.
import { icon } from "./icon.js";

const SHOWN_MS = 6000;
const MOST = 5;
const LOOKS = {
  success: ["green", "circle-check"],
  error: ["red", "circle-x"],
  warning: ["amber", "triangle-alert"],
  info: ["blue", "info"],
};

export function mount(element) {
  const close = document.createElement("button");
  close.type = "button";
  close.className = "button";
  Object.assign(close.dataset, { kind: "quiet", only: "icon", size: "small" });
  close.setAttribute("aria-label", "Close");
  close.append(icon("x"));
  close.addEventListener("click", () => element.remove());
  element.append(close);
  let timer = 0;
  const stop = () => clearTimeout(timer);
  const begin = () => {
    stop();
    // An error stays until it is read and closed.
    if (element.dataset.tone !== "error") timer = setTimeout(() => element.remove(), SHOWN_MS);
  };
  element.addEventListener("pointerenter", stop);
  element.addEventListener("pointerleave", begin);
  element.addEventListener("focusin", stop);
  begin();
  return stop;
}

export function toast(text, tone = "info") {
  const [hue, symbol] = LOOKS[tone] ?? LOOKS.info;
  const element = document.createElement("div");
  element.className = "toast";
  Object.assign(element.dataset, { module: "toast", tone, hue });
  const words = document.createElement("span");
  words.className = "toast-text";
  words.textContent = text;
  element.append(icon(symbol), words);
  const region = document.getElementById("toasts");
  region.append(element);
  while (region.children.length > MOST) region.firstElementChild.remove();
}
