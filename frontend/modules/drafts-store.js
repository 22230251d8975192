// What is written in forms and not submitted yet, in the storage of this browser, apart for each reader.
const LONGEST = 1_000_000; // characters of one draft; browsers give a site about five million
const MOST = 20; // drafts of one reader; the oldest go first
const DAYS = 30; // after which a draft goes

const reader = () => document.body.dataset.reader ?? "";
const cluster = () => document.body.dataset.cluster ?? "";
const prefix = () => `draft ${encodeURIComponent(reader())} `;

// A draft has an id, the name of what it is a draft of, the cluster that it is for, the address of its page, the time it
// was kept (epoch ms), and fields: pairs of name and value.

// Returns the reader's drafts of a name, or all of them, for this cluster, the newest first.
export function drafts(name = "") {
  return ofAllClusters().filter((each) => (each.cluster ?? "") === cluster() && (!name || each.name === name));
}

// Returns all drafts of the reader, whichever cluster they are for, the newest first.
export function ofAllClusters() {
  const found = [];
  for (const key of keys()) {
    const draft = parsed(localStorage.getItem(key));
    if (draft === null || Date.now() - draft.at > DAYS * 86_400_000) localStorage.removeItem(key);
    else found.push(draft);
  }
  return found.sort((one, other) => other.at - one.at);
}

export function draftOf(id) {
  return drafts().find((each) => each.id === id) ?? null;
}

// Keeps a draft and says whether that worked: storage can be full or forbidden.
export function keep(draft) {
  const text = JSON.stringify({ ...draft, cluster: cluster(), at: Date.now() });
  if (text.length > LONGEST) return false;
  for (const old of drafts().slice(MOST - 1)) if (old.id !== draft.id) drop(old.id);
  try {
    localStorage.setItem(prefix() + draft.id, text);
    return true;
  } catch {
    return false;
  }
}

export function drop(id) {
  try {
    localStorage.removeItem(prefix() + id);
  } catch {
    // Storage is forbidden, so there is nothing in it either.
  }
}

function keys() {
  try {
    return Object.keys(localStorage).filter((key) => reader() && key.startsWith(prefix()));
  } catch {
    return [];
  }
}

function parsed(text) {
  try {
    const draft = JSON.parse(text);
    return Array.isArray(draft.fields) && typeof draft.at === "number" ? draft : null;
  } catch {
    return null;
  }
}
