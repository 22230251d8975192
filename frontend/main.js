// Starts htmx, the behaviours that every page has, and mounts data-module="name" elements.
import htmx from "htmx.org";
import { start as startDrafts } from "./modules/drafts.js";
import { start as startKeys } from "./modules/keys.js";
import { start as startLive } from "./modules/live.js";
import { load } from "./modules/load.js";
import { start as startTimes } from "./modules/time.js";

globalThis.htmx = htmx;

const mounted = new Map();

async function mount(element) {
  if (mounted.has(element)) return;
  mounted.set(element, null);
  const module = await load(element.dataset.module);
  if (!module) return;
  const unmount = module.mount(element);
  if (mounted.has(element)) mounted.set(element, unmount ?? null);
  else unmount?.();
}

function modulesIn(node) {
  if (!(node instanceof Element)) return [];
  const inside = [...node.querySelectorAll("[data-module]")];
  return node.matches("[data-module]") ? [node, ...inside] : inside;
}

function watch(records) {
  for (const element of mounted.keys()) {
    if (element.isConnected) continue;
    mounted.get(element)?.();
    mounted.delete(element);
  }
  for (const record of records) {
    for (const node of record.addedNodes) modulesIn(node).forEach(mount);
  }
}

// Modules take over what a draft has put into a form.
startDrafts();
modulesIn(document.documentElement).forEach(mount);
new MutationObserver(watch).observe(document.documentElement, { childList: true, subtree: true });
startTimes();
startKeys();
startLive();
