import assert from "node:assert/strict";
import { test } from "node:test";
import { parse as load } from "yaml";
import { inWords, podsOf, useAll } from "../../frontend/modules/editor-gang.js";
import { read } from "../../frontend/modules/editor-model.js";
import { addTask, removeTask, renameTask, resizeTask } from "../../frontend/modules/editor-tasks.js";
import { at, comments, each, put } from "./samples.mjs";

const MINIMUM = ["spec", "minAvailable"];

function job(minimum, ...replicas) {
  const tasks = replicas.map((number, index) => `  - name: t${index}\n    replicas: ${number}\n`);
  return `spec:\n${minimum === null ? "" : `  minAvailable: ${minimum} # beside\n`}  tasks:\n${tasks.join("")}`;
}

test("the minimum of generated jobs follows the tasks if it was all pods, and else stays", () => {
  each(({ r, object, text, seed }) => {
    const note = `seed ${seed}\n${text}`;
    const before = read(text);
    const total = podsOf(before);
    const all = r.chance(0.5) ? useAll(text) : text;
    const had = at(load(all), MINIMUM);
    const task = r.below(before.tasks.length);
    const more = before.tasks[task];
    for (const [after, now] of [
      [resizeTask(all, more, "11"), total - Number(more.replicas.text) + 11],
      [addTask(all), total + 1],
      [removeTask(all, more), total - Number(more.replicas.text)],
    ]) {
      assert.equal(at(load(after), MINIMUM), had === total ? now : had, note);
    }
    const longer = addTask(all);
    const tasks = at(load(longer), before.tasksPath);
    assert.equal(tasks.at(-1).template.spec.containers[0].name, tasks.at(-1).name, note);
    assert.deepEqual(comments(longer), comments(text), note);
    if (had === total + 1) return; // set by hand, and all pods once there is one more
    const back = load(removeTask(longer, read(longer).tasks.at(-1)));
    assert.deepEqual(back, all === text ? object : put(object, MINIMUM, total), note);
  }, 50);
});

test("what is typed on the way to another number does not end that the minimum follows", () => {
  const steps = ["", "x", "1", "12"];
  let text = job(6, 2, 4);
  for (const typed of steps) text = resizeTask(text, read(text).tasks[0], typed);
  assert.equal(load(text).spec.minAvailable, 16);
  assert.match(text, /minAvailable: 16 # beside/);
});

for (const [name, text, said, mayUseAll] of [
  ["all", job(6, 2, 4), "all 6 pods", false],
  ["the only one", job(1, 1), "the only pod", false],
  ["fewer", job(4, 2, 4), "4 of 6 pods, set by hand", true],
  ["more than there are", job(9, 2, 4), "9 of 6 pods, set by hand", true],
  ["not set", job(null, 2, 4), "all 6 pods", false],
  ["nought, which is not set", job(0, 2, 4), "all 6 pods", false],
  ["left to the tasks", `${job(null, 2, 4)}    minAvailable: 1\n`, "3 of 6 pods: those that the tasks need", true],
  ["left to partitions", `${job(null, 2, 4)}    partitionPolicy: {minPartitions: 1, partitionSize: 2}\n`, "4 of 6 pods: those that the tasks need", true],
  ["no pods yet", "spec: {}", "", false],
  ["no number", job("some", 2), "", false],
  ["foreign", "spec: {minAvailable: [1], tasks: [{replicas: 1}]}", "", false],
  ["foreign replicas", "spec: {minAvailable: 1, tasks: [{replicas: [1]}]}", "", false],
]) {
  test(`which pods start together is told where they are ${name}`, () => {
    assert.deepEqual(inWords(read(text)), { text: said, mayUseAll });
  });
}

test("a minimum that the form cannot read is never written", () => {
  const text = "spec:\n  minAvailable: &n 1\n  tasks:\n  - replicas: *n\n";
  assert.equal(addTask(text).startsWith(text), true);
});

test("a task that others wait for is renamed with what they say, also letter by letter", () => {
  let text = "spec:\n  tasks:\n  - name: a\n  - name: b\n    dependsOn:\n      name: [a, b] # beside\n";
  for (const typed of ["", "p", "prep"]) text = renameTask(text, read(text).tasks[0], typed);
  assert.equal(text, 'spec:\n  tasks:\n  - name: "prep"\n  - name: b\n    dependsOn:\n      name: ["prep", b] # beside\n');
});

test("the name of one of two equal tasks changes alone", () => {
  const text = "spec: {tasks: [{name: a}, {name: a}, {name: b, dependsOn: {name: [a]}}]}\n";
  assert.deepEqual(load(renameTask(text, read(text).tasks[0], "c")).spec.tasks[2].dependsOn.name, ["a"]);
});
