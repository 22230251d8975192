// The tasks of a job: one more, one less, another name or number of pods; what depends on that follows.

import { follow } from "./editor-gang.js";
import { mend } from "./editor-mend.js";
import { read } from "./editor-model.js";
import { newContainer } from "./editor-parts.js";
import { orderAt } from "./editor-places.js";
import { append } from "./editor-text.js";
import { removeItem, write } from "./editor-write.js";

const BEGIN = `apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: my-job
  namespace: default
spec:
  queue: default
`;

// Returns text with one more task, named apart from the others; an empty text becomes a job.
export function addTask(text) {
  const source = mend(text).text.trim() === "" ? BEGIN : mend(text).text;
  const { tasks, tasksPath } = read(source);
  const names = new Set(tasks.map((task) => task.name.text));
  let number = tasks.length + 1;
  while (names.has(`task-${number}`)) number += 1;
  const name = `task-${number}`;
  const pod = { containers: [newContainer(name)], restartPolicy: "Never" };
  return follow(source, append(source, tasksPath, { name, replicas: 1, template: { spec: pod } }, orderAt));
}

// Returns text without a task.
export function removeTask(text, task) {
  return follow(text, removeItem(text, task.path));
}

// Returns text in which a task has as many pods as was typed.
export function resizeTask(text, task, typed) {
  return follow(text, write(text, task.replicas.path, typed));
}

// Returns text in which a task has another name, also where others wait for it.
export function renameTask(text, task, typed) {
  const { text: before } = task.name;
  const { tasks } = read(text);
  const isOnly = tasks.filter((each) => each.name.text === before).length === 1;
  const renamed = write(text, task.name.path, typed, { stays: true });
  if (!isOnly) return renamed;
  const places = tasks.flatMap(({ dependsOn: { names } }) =>
    names.words.flatMap((word, index) => (word === before ? [[...names.path, index]] : [])),
  );
  return places.reduce((it, path) => write(it, path, typed, { stays: true }), renamed);
}
