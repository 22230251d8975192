// Follows the logs of one pod or of many together: search, filter, wrapping, times, links to lines, following the end.

import { feed as makeFeed } from "./logs-feed.js";
import { legend as makeLegend } from "./logs-legend.js";
import { keyOf, lines as makeLines } from "./logs-lines.js";
import { links as makeLinks } from "./logs-links.js";
import { amount, missing } from "./logs-words.js";
import { logAddress } from "./runs.js";
import { isTouched } from "./touched.js";

const PLACE = ["namespace", "job", "of", "run", "pod", "uid", "container", "attempt"];

export function mount(root) {
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const { pod, uid, job } = root.dataset;
  const isTogether = root.dataset.together !== undefined;
  for (const choice of root.querySelectorAll("[data-part=choice]")) {
    const ask = () => {
      // What belongs to the old pod is not asked of the new one.
      if (!choice.dataset.of) for (const each of root.querySelectorAll("[data-of]")) each.disabled = true;
      choice.form.requestSubmit();
    };
    choice.addEventListener("change", ask);
    if (isTouched(choice)) ask();
  }
  const known = document.getElementById("log-pods");
  const news = new MutationObserver(changed);
  if (known) news.observe(known, { attributeFilter: ["data-known", "data-first"] });
  if (!pod) return () => news.disconnect();

  const box = part("text");
  const shown = makeLines(box, () => !part("follow").checked);
  const legend = makeLegend(part("pods"), { changed: shown.hide, done: judged });
  const feed = makeFeed(() => Object.fromEntries(PLACE.map((name) => [name, root.dataset[name] ?? ""])), {
    begin,
    line,
    lost: (bytes) => shown.say(`— ${amount(bytes)} were dropped by rotation —`),
    news: heard,
    underWay: () => shown.underWay(),
    end: () => {},
    denied: (words) => note(words),
  });
  const links = makeLinks({
    place: root.dataset,
    box,
    shown,
    button: part("linked"),
    chosen: () => {
      part("follow").checked = false;
    },
  });
  const seen = new Map(); // pod and container -> the attempt whose lines came last
  let aim = root.dataset.line ?? ""; // the line to scroll to, once it is there
  let isLinked = aim !== "";
  let about = { before: 0, more: false, note: "", absent: [], pods: [0, 0] };

  box.dataset.states = root.querySelector("a[download]")?.href ?? "";
  part("first").remove();
  part("tools").hidden = false;
  if (isTogether) box.dataset.times = "";
  part("times").checked = isTogether;

  function begin(message, isAgain) {
    if (!isAgain) about = { ...about, before: message.before, more: message.more, note: message.note };
    if (!isAgain && message.lost) shown.say(`— ${amount(message.lost)} before this were dropped by rotation —`, " ");
    if (isAgain && message.cut) shown.say("— lines between are not shown; the download has them —");
  }

  function line(log, piece) {
    if (!log.label && isTogether) name(log);
    const whose = `${log.uid} ${log.container}`;
    const last = seen.get(whose);
    if (last !== undefined && last < log.attempt) {
      shown.say(`— ${isTogether ? `${log.label}: ` : ""}attempt ${log.attempt} —`, piece.time);
    }
    seen.set(whose, Math.max(last ?? 0, log.attempt));
    shown.add(log, piece);
  }

  function name(log) {
    const short = log.pod.startsWith(`${job}-`) ? log.pod.slice(job.length + 1) : log.pod;
    const { hue, label } = legend.of(log.uid, short, log.rank);
    Object.assign(log, { hue, label: log.isOne ? label : `${label}/${log.container}` });
    part("legend").hidden = false;
  }

  function heard(message) {
    if (message.absent) about.absent = message.absent;
    if (message.pods) about.pods = message.pods;
    if (message.lines) shown.show();
    say();
    const found = aim && shown.byKey(aim);
    if (found) {
      part("follow").checked = false;
      if (isLinked) shown.mark(found);
      shown.reveal(found);
    } else if (part("follow").checked) bottom();
    if (message.lines) aim = "";
  }

  // Says how much is on the page and what is not, and which pods have no log.
  function say() {
    const { count, dropped, hits } = shown.numbers();
    const [followed, all] = about.pods;
    const whose = isTogether ? ` of ${legend.size().toLocaleString()} ${legend.size() === 1 ? "pod" : "pods"}` : "";
    const left = dropped ? `; ${dropped.toLocaleString()} older ones left the page to keep it quick` : "";
    part("count").textContent = `${count.toLocaleString()} ${count === 1 ? "line" : "lines"}${whose}${left}`;
    part("found").textContent = part("find").value ? `${hits.toLocaleString()} found` : "";
    const words = [about.note, ...about.absent.map((each) => missing(each, followed))];
    if (all > followed)
      words.push(`${followed} of ${all.toLocaleString()} pods are followed; the download has them all.`);
    if (dropped) words.push("What left the page is in the download.");
    if (about.before !== 0) {
      const left = about.before === null ? "Lines before these" : `${amount(about.before)} before these lines`;
      words.push(`${left} are not shown; the download has them.`);
    }
    if (about.more) words.push("Lines after these are not shown.");
    if (!count && !about.absent.length) words.push("Nothing has been printed so far.");
    note(words.filter(Boolean).join(" "), ...steps(dropped));
  }

  function steps(dropped) {
    const offered = [];
    if (about.before !== 0 || dropped) {
      offered.push(["Show the beginning", () => go("start")]);
      offered.push(["Show earlier lines", () => go(keyOf(shown.first()))]);
    }
    if (about.more) {
      offered.push(["Show later lines", () => go(keyOf(shown.last()))]);
      offered.push(["Show the end", () => go("")]);
    }
    return offered;
  }

  function note(words, ...offered) {
    const place = part("note");
    const text = place.querySelector("span");
    if (text.textContent !== words) text.textContent = words;
    place.hidden = !words && !offered.length;
    const buttons = [...place.querySelectorAll("button")];
    if (buttons.map((each) => each.textContent).join() === offered.map(([said]) => said).join()) return;
    for (const each of buttons) each.remove();
    for (const [said, act] of offered) {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", className: "link", textContent: said });
      button.addEventListener("click", act);
      place.append(" ", button);
    }
  }

  function go(where) {
    aim = where;
    isLinked = false;
    part("follow").checked = where === "";
    shown.clear();
    seen.clear();
    links.forget();
    feed.open(where);
    box.focus();
  }

  // Pods come and go while somebody reads: the box of names follows, and a pod of the same name is offered.
  function changed() {
    if (!pod) {
      if (known.dataset.first) location.replace(logAddress(known.dataset.first));
      return;
    }
    const { options, uids } = JSON.parse(known.dataset.known);
    const names = part("choice");
    for (const [value, words] of options) {
      const option = [...names.options].find((each) => each.value === value);
      if (!option) names.add(new Option(words, value));
      else if (option.textContent !== words) option.textContent = words;
    }
    part("replaced").hidden = isTogether || !uids[pod] || uids[pod] === uid;
    part("replaced").querySelector("a").href = logAddress(pod);
  }

  function bottom() {
    box.scrollTop = box.scrollHeight;
  }

  function scrolled() {
    const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 24;
    // Scrolling up is how people say that they read.
    if (!isAtEnd && part("follow").checked && box.dataset.held !== undefined) part("follow").checked = false;
  }

  function search() {
    shown.find(part("find").value, part("only").checked);
    judged();
  }

  function judged() {
    shown.judgeAll();
    say();
    if (part("follow").checked) bottom();
  }

  const hold = () => {
    box.dataset.held = "";
  };
  for (const name of ["wheel", "touchmove", "keydown", "pointerdown"])
    box.addEventListener(name, hold, { passive: true });
  box.addEventListener("scroll", scrolled, { passive: true });
  part("find").addEventListener("input", search);
  part("only").addEventListener("change", search);
  part("find").addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    part("follow").checked = false;
    shown.next(event.shiftKey ? -1 : 1);
  });
  part("wrap").addEventListener("change", (event) => box.toggleAttribute("data-wrap", event.target.checked));
  part("times").addEventListener("change", (event) => box.toggleAttribute("data-times", event.target.checked));
  part("follow").addEventListener("change", (event) => {
    delete box.dataset.held;
    if (event.target.checked) bottom();
  });
  part("all").addEventListener("click", () => legend.setAll(false));
  part("none").addEventListener("click", () => legend.setAll(true));
  feed.open(aim);
  return () => {
    news.disconnect();
    feed.close();
  };
}
