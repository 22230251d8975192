// The gang of a job: how many pods it has, and how many of them must start together.

import { read } from "./editor-model.js";
import { write } from "./editor-write.js";

const MINIMUM = ["spec", "minAvailable"];
const whole = (field) => (/^\d{1,15}$/.test(field.text) ? Number(field.text) : null);
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);

// Returns how many pods the tasks of a view have together; null where the form cannot read one of them.
export function podsOf(view) {
  if (view.tasksWhy || view.tasks.some((task) => task.replicas.state === "foreign")) return null;
  return sum(view.tasks.map((task) => whole(task.replicas) ?? 0));
}

// Returns how many pods the job needs where it does not say so: those that its tasks need.
function neededByTasks(view) {
  return sum(view.tasks.map((task) => whole(task.minAvailable) ?? partitionsNeeded(task) ?? whole(task.replicas) ?? 0));
}

function partitionsNeeded(task) {
  return (whole(task.minPartitions) ?? 0) * (whole(task.partitionSize) ?? 0) || null;
}

// Returns the text after a change of its tasks, in which minAvailable is still all pods if it was all before.
export function follow(before, after) {
  const [old, now] = [read(before), read(after)];
  const [had, has] = [podsOf(old), now.ok ? podsOf(now) : null];
  const { state, text } = old.job.minAvailable;
  if (state !== "set" || had === null || has === null || text !== String(had)) return after;
  return write(after, MINIMUM, String(has));
}

// Returns text in which all pods must start together.
export function useAll(text) {
  return write(text, MINIMUM, String(podsOf(read(text))));
}

// Returns {text, mayUseAll}: which pods must start together, in words, and whether these are other than all.
export function inWords(view) {
  const [total, { state, text }] = [podsOf(view), view.job.minAvailable];
  const minimum = whole(view.job.minAvailable);
  const nothing = { text: "", mayUseAll: false };
  if (!total || state === "foreign" || (text !== "" && minimum === null)) return nothing;
  if (!minimum) {
    const needed = neededByTasks(view);
    if (needed !== total) return { text: `${needed} of ${total} pods: those that the tasks need`, mayUseAll: true };
  } else if (minimum !== total) {
    return { text: `${minimum} of ${total} pods, set by hand`, mayUseAll: true };
  }
  return { text: total === 1 ? "the only pod" : `all ${total} pods`, mayUseAll: false };
}
