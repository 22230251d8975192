// One socket per tab: it reconnects with a jittered back-off, notices sleep, and shows its state in #live.
import { icon } from "./icon.js";
import { clockTime, now } from "./time.js";

const SILENCE_MS = 12000; // heads come every 4 s
const CHECK_MS = 3000;
const LONGEST_WAIT_MS = 15000;
const CALM_MS = 1200; // a state shorter than this is not shown
const GONE = 4401; // logged out or not allowed: asking again is of no use

const LOOKS = {
  live: ["green", "radio", "live"],
  catching: ["amber", "refresh-cw", "catching up"],
  stale: ["red", "wifi-off", "stale since"],
  loaded: ["grey", "clock", "as of"],
  denied: ["red", "ban", "not allowed"],
  refused: ["red", "ban", "refused:"],
  ended: ["red", "log-out", "logged out"],
};

function chip() {
  const place = document.getElementById("live");
  let shown = "";
  return (state, detail) => {
    const [hue, symbol, words] = LOOKS[state];
    const text = ["stale", "loaded", "refused"].includes(state) ? `${words} ${detail}` : words;
    if (!place || shown === text) return;
    shown = text;
    place.hidden = false;
    Object.assign(place.dataset, { state, hue });
    place.title = detail;
    const label = document.createElement("span");
    label.textContent = text;
    place.replaceChildren(icon(symbol), label);
  };
}

// A socket is refused whose page has another origin than its request (dashboard/live/origins.py). No browser tells why a
// socket was not opened; but the page knows which origin its own request had.
function changed() {
  const { origin } = document.body.dataset;
  if (!origin || origin === location.origin) return "";
  return `the proxy changes ${new URL(origin).host === location.host ? "the scheme" : "Host"}`;
}

export function connect(path, { opened, received }) {
  const address = new URL(path, location.href);
  address.protocol = address.protocol.replace("http", "ws");
  const show = chip();
  const self = { ready: false, send, report };
  let state = { idle: false, waiting: true, denied: "" };
  let web = null;
  const began = now();
  let failures = 0;
  let refused = changed(); // until a socket was opened all the same, as that of an origin that is trusted
  let heard = now(); // when the server last spoke
  let ticked = Date.now();
  let retry = 0;
  let calm = 0;
  let coming = "";
  let ended = false;

  function send(message) {
    if (self.ready) web.send(JSON.stringify(message));
  }

  function report(next) {
    state = next ?? state;
    const stale = clockTime(heard);
    if (ended) display("ended", "Log in again to go on.");
    else if (state.idle) display("loaded", clockTime(began));
    else if (!self.ready && failures > 0 && refused) display("refused", refused);
    else if (!self.ready) display(failures > 0 || web === null ? "stale" : "catching", stale);
    else if (state.waiting) display("catching", "");
    else if (state.denied) display("denied", state.denied);
    else display("live", "Changes appear by themselves");
  }

  // Short interruptions are not worth a word: anything but live is shown only when it lasts.
  function display(kind, detail) {
    const same = kind === coming;
    coming = kind;
    if (["live", "loaded", "ended"].includes(kind)) {
      clearTimeout(calm);
      show(kind, detail);
    } else if (!same) {
      clearTimeout(calm);
      calm = setTimeout(show, CALM_MS, kind, detail);
    }
  }

  function dial() {
    clearTimeout(retry);
    drop();
    web = new WebSocket(address);
    web.addEventListener("open", joined);
    web.addEventListener("message", hear);
    web.addEventListener("close", lost);
  }

  function drop() {
    if (!web) return;
    web.removeEventListener("open", joined);
    web.removeEventListener("message", hear);
    web.removeEventListener("close", lost);
    web.close();
    web = null;
    self.ready = false;
  }

  function joined() {
    self.ready = true;
    refused = "";
    heard = now();
    opened();
    report();
  }

  function hear(event) {
    failures = 0;
    heard = now();
    received(JSON.parse(event.data));
  }

  function lost(event) {
    self.ready = false;
    web = null;
    failures += 1;
    ended = event.code === GONE;
    report();
    if (ended) return;
    const longest = Math.min(LONGEST_WAIT_MS, 500 * 2 ** Math.min(failures, 6));
    retry = setTimeout(dial, longest * (0.5 + Math.random() / 2));
  }

  // After sleep, or when the tab is looked at again, the socket may be dead without having said so.
  function check() {
    if (ended) return;
    if (!self.ready) {
      dial();
      return;
    }
    const asked = now();
    send({ op: "ping" });
    setTimeout(() => {
      if (self.ready && heard < asked) again();
    }, CHECK_MS);
  }

  function again() {
    failures += 1;
    dial();
    report();
  }

  function tick() {
    const slept = Date.now() - ticked > 10000;
    ticked = Date.now();
    if (slept) check();
    else if (self.ready && now() - heard > SILENCE_MS) again();
  }

  setInterval(tick, 1000);
  addEventListener("online", check);
  addEventListener("pageshow", (event) => event.persisted && check());
  document.addEventListener("visibilitychange", () => document.hidden || check());
  dial();
  return self;
}
