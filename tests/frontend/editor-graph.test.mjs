import assert from "node:assert/strict";
import { test } from "node:test";
import { layout, sentence } from "../../frontend/modules/editor-graph-layout.js";
import { random } from "./specs.mjs";

const task = (name, ...waitsFor) => ({ name, waitsFor, isAny: false });

// Returns the column of each task, counted from the left.
function columns(tasks) {
  const places = layout(tasks).boxes.map((box) => box.x);
  const sorted = [...new Set(places)].sort((one, other) => one - other);
  return places.map((x) => sorted.indexOf(x));
}

for (const [name, tasks, expected] of [
  ["a line", [task("a"), task("b", "a"), task("c", "b")], [0, 1, 2]],
  ["a diamond, its end written first", [task("d", "b", "c"), task("a"), task("b", "a"), task("c", "a")], [2, 0, 1, 1]],
  ["a longer way beside a short one", [task("a"), task("b", "a"), task("c", "a", "b")], [0, 1, 2]],
  ["a task that there is not", [task("a", "never")], [0]],
  ["a task that waits for itself", [task("a", "a")], [0]],
  ["no tasks", [], []],
]) {
  test(`${name} is drawn from left to right`, () => assert.deepEqual(columns(tasks), expected));
}

test("a circle is drawn all the same", () => {
  const { boxes, lines } = layout([task("a", "c"), task("b", "a"), task("c", "b")]);
  assert.equal(boxes.length, 3);
  assert.equal(lines.length, 3);
});

test("whatever the order is, tasks stand right of those that they wait for, apart, and inside of the drawing", () => {
  for (let seed = 1; seed <= 200; seed += 1) {
    const r = random(seed);
    const count = 1 + r.below(8);
    const tasks = Array.from({ length: count }, (_, index) => {
      const before = Array.from({ length: index }, (_, other) => `t${other}`).filter(() => r.chance(0.3));
      return task(`t${index}`, ...before);
    }).sort(() => r.below(3) - 1);
    const { width, height, boxes, lines } = layout(tasks);
    const x = new Map(boxes.map((box) => [box.name, box.x]));
    for (const { name, waitsFor } of tasks) for (const other of waitsFor) assert.ok(x.get(name) > x.get(other), `seed ${seed}`);
    assert.equal(new Set(boxes.map((box) => `${box.x} ${box.y}`)).size, count, `seed ${seed}`);
    for (const box of boxes) assert.ok(box.x + box.width <= width && box.y + box.height <= height, `seed ${seed}`);
    assert.equal(lines.length, tasks.flatMap((each) => each.waitsFor).length, `seed ${seed}`);
  }
});

for (const [each, words] of [
  [task("a"), "a starts first."],
  [task("b", "a"), "b waits for a."],
  [task("d", "a", "b", "c"), "d waits for a, b and c."],
  [{ ...task("d", "a", "b"), isAny: true }, "d waits for a or b."],
]) {
  test(`the order in words: ${words}`, () => assert.equal(sentence(each), words));
}
