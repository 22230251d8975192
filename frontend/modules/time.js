// Shows every <time datetime> relative to now, with the exact moment in the reader's zone on hover.
const UNITS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hour12: false,
});
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
let skew = 0; // the server's clock minus this one's, in ms

export function now() {
  return Date.now() + skew;
}

export function correct(serverNow) {
  const difference = serverNow - Date.now();
  if (Math.abs(difference - skew) > 1000) skew = difference;
}

export function span(milliseconds) {
  let left = Math.max(0, Math.floor(milliseconds / 1000));
  const said = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count) said.push(`${count} ${unit}`);
    else if (said.length) break;
    if (said.length === 2) break;
  }
  return said.join(" ") || "0 s";
}

function coarse(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  for (const [size, unit] of UNITS) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return "0 s";
}

export function clockTime(moment) {
  return clock.format(moment);
}

function words(moment, mode) {
  const passed = now() - moment;
  if (mode === "clock") {
    return passed < 12 * 3600000 ? clock.format(moment) : `${day.format(moment)} ${clock.format(moment)}`;
  }
  if (mode === "since") return span(passed);
  if (mode === "until") return passed < 0 ? `in ${span(-passed)}` : "now";
  if (passed < -1000) return `in ${coarse(-passed)}`;
  if (passed < 1000) return "now";
  return `${coarse(passed)} ago`;
}

// A time may come as its own text: 2026-11-23 07:49:39Z.
export function stamp(element) {
  const text = element.textContent.replace(" ", "T");
  if (!element.hasAttribute("datetime") && !Number.isNaN(Date.parse(text))) element.dateTime = text;
}

export function show(element) {
  stamp(element);
  const moment = Date.parse(element.dateTime);
  if (Number.isNaN(moment)) return;
  const text = words(moment, element.dataset.mode);
  if (element.textContent !== text) element.textContent = text;
  if (element.dataset.told !== element.dateTime) {
    element.dataset.told = element.dateTime;
    element.title = exact.format(moment);
  }
}

export function showAll(root = document) {
  if (root.tagName === "TIME") show(root);
  for (const element of root.querySelectorAll("time")) show(element);
}

export function start() {
  const zone = document.querySelector("[data-zone]");
  if (zone) zone.textContent = `Times are in ${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
  showAll();
  setInterval(() => {
    if (!document.hidden) showAll();
  }, 1000);
  document.addEventListener("visibilitychange", () => document.hidden || showAll());
  document.addEventListener("htmx:after:swap", () => showAll());
}
