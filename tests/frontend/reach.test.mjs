import assert from "node:assert/strict";
import { test } from "node:test";
import { reach } from "../../frontend/modules/reach.js";

globalThis.document = { querySelector: () => ({ href: "http://here/icon" }) };

for (const [name, answer, expected] of [
  ["the server", () => new Response(null, { status: 200 }), true],
  ["what stands in for a stopped cluster", () => new Response(null, { status: 503 }), false],
  ["nobody", () => Promise.reject(new TypeError("refused")), false],
]) {
  test(`${name} answers`, async () => {
    globalThis.fetch = async () => answer();
    assert.equal(await reach(), expected);
  });
}
