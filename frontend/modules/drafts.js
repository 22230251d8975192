// Drafts: what is written in a form with data-draft="what it is a draft of" outlives a server that is away, a closed
// tab and the back button. A draft goes when the server says that it was submitted (data-draft of a toast), when its
// writer discards it or undoes every change, and when its reader logs out.
import htmx from "htmx.org";
import { fill, read, title } from "./drafts-fields.js";
import { notice } from "./drafts-notice.js";
import { draftOf, drafts, drop, keep, ofAllClusters } from "./drafts-store.js";
import { reach } from "./reach.js";

const PAUSE_MS = 300;
const AGAIN_MS = 2000;
const MAX_OFFERED = 3;
const CHOSEN = "draft to open"; // in sessionStorage: the draft that a reader goes on with on the page that opens
const CHANGES = ["input", "change", "click", "keyup", "paste", "cut", "drop"];

export function start() {
  for (const toast of document.querySelectorAll(".toast[data-draft]")) drop(toast.dataset.draft);
  for (const form of document.querySelectorAll("form[data-draft]")) follow(form);
  document.querySelector("form[data-forgets-drafts]")?.addEventListener("submit", forget);
}

function follow(form) {
  const name = form.dataset.draft;
  const begun = JSON.stringify(read(form));
  const back = restored(form);
  let id = back?.id ?? (form.dataset.draftId || fresh());
  let last = JSON.stringify(read(form));
  let timer = 0;
  let isSent = false;
  let isHeld = false;

  function look() {
    clearTimeout(timer);
    const fields = read(form);
    const text = JSON.stringify(fields);
    if (text === last) return;
    last = text;
    if (text === begun) {
      drop(id);
    } else {
      const kept = keep({ id, name, url: location.pathname + location.search, title: title(fields), fields });
      form.toggleAttribute("data-draft-kept", kept);
      remember(id);
      hold();
    }
  }

  function soon() {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE_MS);
  }

  // A tab that was duplicated has the draft of the first one, and goes on with a draft of its own.
  function hold() {
    if (isHeld) return;
    isHeld = true;
    navigator.locks?.request(lockOf(id), { ifAvailable: true }, (lock) => {
      if (lock) return new Promise(() => {});
      id = fresh();
      return undefined;
    });
  }

  // Only a server that answers is sent a form: the browser's own page of errors would stand in the place of this one.
  async function send(event) {
    look();
    if (isSent) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const { submitter } = event;
    if (!(await reach())) {
      away(form);
      return;
    }
    isSent = true;
    form.requestSubmit(submitter);
    isSent = false;
  }

  for (const kind of CHANGES) form.addEventListener(kind, soon);
  form.addEventListener("formdata", (event) => event.formData.set("draft", id));
  form.addEventListener("submit", send, { capture: true });
  globalThis.addEventListener("beforeunload", look);
  globalThis.addEventListener("pagehide", look);
  document.addEventListener("visibilitychange", look);
  if (back) {
    form.toggleAttribute("data-draft-kept", true);
    remember(id);
    hold();
    tell(form, back);
  } else if (!form.dataset.draftId) {
    offer(form, name, () => id);
  }
}

// Puts the draft into the form that belongs here: the one that was chosen, or written at this place of the history.
function restored(form) {
  const id = sessionStorage.getItem(CHOSEN) ?? history.state?.draft;
  sessionStorage.removeItem(CHOSEN);
  const draft = id ? draftOf(id) : null;
  if (draft?.name !== form.dataset.draft) return null;
  fill(form, draft.fields);
  if (form.dataset.draftRefresh) refresh(form, draft.fields);
  return draft;
}

// Some fields are there only once the server has read the others.
async function refresh(form, fields) {
  const place = form.dataset.draftRefresh;
  const token = form.elements.csrfmiddlewaretoken.value;
  const values = { ...Object.fromEntries(fields), csrfmiddlewaretoken: token, do: "check" };
  await htmx.ajax("POST", form.action, { values, target: place, select: place, swap: "outerMorph" });
  fill(form, fields);
}

function tell(form, draft) {
  notice(form, "blue", "rotate-ccw", ["What you wrote here ", draft.at, " is back; it was not submitted."], {
    "Begin anew": () => {
      drop(draft.id);
      remember(undefined);
      form.toggleAttribute("data-draft-kept", true);
      location.assign(draft.url);
    },
  });
}

// Offers the drafts that no tab has open. While one has, it looks again: a closed tab lets go of its draft a moment later.
async function offer(form, name, own) {
  const offered = new Map(); // what takes away the notice of a draft, by the draft's id
  for (;;) {
    const held = new Set(((await navigator.locks?.query())?.held ?? []).map((lock) => lock.name));
    const others = drafts(name).filter(({ id }) => id !== own());
    const free = others.filter(({ id }) => !held.has(lockOf(id))).slice(0, MAX_OFFERED);
    for (const [id, close] of offered) {
      if (free.some((draft) => draft.id === id)) continue;
      close();
      offered.delete(id);
    }
    for (const draft of free.reverse()) {
      if (!offered.has(draft.id)) offered.set(draft.id, offerOne(form, draft));
    }
    if (!others.some(({ id }) => held.has(lockOf(id)))) return;
    await new Promise((done) => setTimeout(done, AGAIN_MS));
    if (!form.isConnected) return;
  }
}

// Returns what takes the notice away.
function offerOne(form, draft) {
  const begun = draft.title ? `You began “${draft.title}” ` : "You began one ";
  const close = notice(form, "blue", "file-text", [begun, draft.at, " and did not submit it."], {
    "Go on with it": () => {
      sessionStorage.setItem(CHOSEN, draft.id);
      location.assign(draft.url);
    },
    Discard: () => {
      drop(draft.id);
      close();
    },
  });
  return close;
}

async function away(form) {
  if (form.querySelector("[data-part=away][data-hue=red]")) return;
  form.querySelector("[data-part=away]")?.remove();
  const words = "The server does not answer, so nothing was submitted. What you wrote stays here";
  const kept = form.hasAttribute("data-draft-kept") ? " and is kept in this browser." : ".";
  const close = notice(form, "red", "wifi-off", [words + kept], {}, "away");
  while (form.isConnected && !(await reach())) await new Promise((done) => setTimeout(done, AGAIN_MS));
  close();
  notice(form, "green", "circle-check", ["The server answers again. Submit once more."], {}, "away");
}

function forget(event) {
  const all = ofAllClusters();
  if (!all.length) return;
  const words = all.length === 1 ? "A draft that is" : `${all.length} drafts that are`;
  const asked = `${words} not submitted will be deleted from this browser. Log out?`;
  if (globalThis.confirm(asked)) for (const { id } of all) drop(id);
  else event.preventDefault();
}

function remember(draft) {
  history.replaceState({ ...history.state, draft }, "");
}

function lockOf(id) {
  return `draft ${id}`;
}

function fresh() {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
