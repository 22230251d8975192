// Mends the two slips that the Volcano documentation itself makes, at the place where the parser stumbles:
// an unquoted * (every event) and an indented ... (lines not shown). The server does the same.

import { parse } from "./editor-text.js";

const MOST = 200;

// Returns the text that was meant, and whether it differs.
export function mend(text) {
  let mended = text;
  for (let round = 0; round < MOST; round += 1) {
    const next = mendOne(mended);
    if (next === null) break;
    mended = next;
  }
  return { text: mended, changed: mended !== text };
}

function mendOne(text) {
  for (const error of parse(text).errors) {
    const at = error.pos[0];
    if (error.code === "BAD_ALIAS" && /^\*(?=[\s,\]}]|$)/.test(text.slice(at))) {
      return `${text.slice(0, at)}"*"${text.slice(at + 1)}`;
    }
    const start = text.lastIndexOf("\n", at - 1) + 1;
    const line = text.slice(start).split("\n", 1)[0];
    if (line.trim() === "..." && line.startsWith(" ")) {
      return `${text.slice(0, at)}# ${text.slice(at)}`;
    }
  }
  return null;
}
