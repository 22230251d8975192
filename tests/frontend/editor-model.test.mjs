import assert from "node:assert/strict";
import { test } from "node:test";
import { parse as load } from "yaml";
import { read } from "../../frontend/modules/editor-model.js";
import { addVariable } from "../../frontend/modules/editor-parts.js";
import { addTask } from "../../frontend/modules/editor-tasks.js";
import * as yaml from "../../frontend/modules/editor-write.js";
import { parse } from "../../frontend/modules/editor-text.js";
import { at, comments, each, put, ROUNDS, texts } from "./samples.mjs";

const C = ["template", "spec", "containers", 0];

const scalars = (tasks, index) => [
  ["metadata", "name"],
  ["metadata", "namespace"],
  ["spec", "queue"],
  ["spec", "minAvailable"],
  ["spec", "priorityClassName"],
  ["spec", "minSuccess"],
  [...tasks, index, "replicas"],
  [...tasks, index, "minAvailable"],
  [...tasks, index, ...C, "image"],
  [...tasks, index, ...C, "workingDir"],
  [...tasks, index, ...C, "resources", "requests", "cpu"],
  [...tasks, index, ...C, "resources", "requests", "nvidia.com/gpu"],
  [...tasks, index, "template", "spec", "restartPolicy"],
  [...tasks, index, "partitionPolicy", "totalPartitions"],
  [...tasks, index, "partitionPolicy", "minPartitions"],
  ["spec", "networkTopology", "mode"],
  ["spec", "networkTopology", "highestTierAllowed"],
  ["spec", "networkTopology", "highestTierName"],
  [...tasks, index, "partitionPolicy", "networkTopology", "mode"],
  [...tasks, index, "partitionPolicy", "networkTopology", "highestTierAllowed"],
  [...tasks, index, "template", "spec", "nodeSelector", "ui.volcano.sh/simulated"],
  [...tasks, index, "template", "metadata", "annotations", "ui.volcano.sh/duration-seconds"],
];

test("a form field changes exactly its own path in generated jobs", () => {
  let lines = 0;
  each(({ r, object, text, seed }) => {
    const view = read(text);
    const path = r.pick(scalars(view.tasksPath, r.below(view.tasks.length)));
    const typed = r.pick(["7", "new-value", "yes", "a: b # c", "it's", "*", "012"]);
    if (String(at(object, path)).startsWith("#")) return; // as a block it looks like a comment, and goes
    const after = yaml.write(text, path, typed);
    const number = /replicas|minAvailable|minSuccess|Partitions|highestTierAllowed/.test(path.at(-1)) && typed === "7";
    assert.deepEqual(load(after), put(object, path, number ? 7 : typed), `seed ${seed} ${path}\n${text}\n---\n${after}`);
    assert.deepEqual(comments(after), comments(text), `seed ${seed}: comments`);
    const before = new Set(text.split("\n"));
    lines += after.split("\n").filter((line) => !before.has(line)).length;
  });
  assert.ok(lines / ROUNDS < 3, `${lines / ROUNDS} new lines for one field`);
});

test("the form's view equals what the YAML says in generated jobs", () => {
  each(({ object, text, seed }) => {
    const view = read(text);
    assert.equal(view.ok, true);
    const tasks = object.spec.tasks ?? object.spec.taskSpecs;
    assert.equal(view.tasks.length, tasks.length);
    view.tasks.forEach((task, index) => {
      const pod = tasks[index].template.spec;
      for (const list of ["containers", "initContainers"]) {
        assert.equal(task.pod[list].rows.length, pod[list]?.length ?? 0, `seed ${seed}`);
        task.pod[list].rows.forEach((shown, place) => sameContainer(shown, pod[list][place], `seed ${seed}`));
      }
      assert.deepEqual(texts(task.pod.volumes, "name"), (pod.volumes ?? []).map((volume) => volume.name));
      assert.equal(task.totalPartitions.text, String(tasks[index].partitionPolicy?.totalPartitions ?? ""));
      assert.equal(task.partitionMode.text, tasks[index].partitionPolicy?.networkTopology?.mode ?? "");
    });
    assert.deepEqual(texts(view.volumes, "mountPath"), (object.spec.volumes ?? []).map((volume) => volume.mountPath));
    assert.equal(view.job.mode.text, object.spec.networkTopology?.mode ?? "");
    assert.equal(view.job.highestTierName.text, object.spec.networkTopology?.highestTierName ?? "");
  });
});

function sameContainer(shown, own, note) {
  assert.equal(shown.name.text, own.name, note);
  assert.equal(shown.image.text, own.image, note);
  assert.deepEqual(shown.command.command.words, own.command ?? []);
  assert.deepEqual(shown.command.args.words, own.args ?? []);
  assert.deepEqual(texts(shown.env, "name"), (own.env ?? []).map((row) => row.name));
  assert.deepEqual(texts(shown.ports, "containerPort"), (own.ports ?? []).map((row) => String(row.containerPort)));
  assert.deepEqual(texts(shown.mounts, "mountPath"), (own.volumeMounts ?? []).map((row) => row.mountPath));
  assert.deepEqual(texts(shown.mounts, "subPath"), (own.volumeMounts ?? []).map((row) => row.subPath ?? ""));
  assert.equal(shown.resources[0].request.text, own.resources?.requests?.cpu ?? "");
}

test("typing a value and taking it away again leaves generated jobs as they were", () => {
  each(({ r, object, text, seed }) => {
    const view = read(text);
    const path = r.pick(scalars(view.tasksPath, r.below(view.tasks.length)));
    if (at(object, path) !== undefined) return;
    const back = yaml.write(yaml.write(text, path, "x-1"), path, "");
    const left = load(back);
    const holder = at(object, path.slice(0, -1));
    assert.deepEqual(holder ? left : prune(left), holder ? object : prune(object), `seed ${seed} ${path}\n${text}\n---\n${back}`);
  });
});

function prune(value) {
  if (Array.isArray(value)) return value.map(prune);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).map(([name, item]) => [name, prune(item)]);
  return Object.fromEntries(kept.filter(([, item]) => item === null || typeof item !== "object" || Object.keys(item).length > 0));
}

test("commands and environment are added and removed without touching the rest", () => {
  each(({ r, object, text, seed }) => {
    const view = read(text);
    const index = r.below(view.tasks.length);
    const base = [...view.tasksPath, index, ...C];
    const note = `seed ${seed}\n${text}`;
    const line = "for i in 1 2; do\n  echo $i\ndone";
    const shell = put(put(object, [...base, "args"], undefined), [...base, "command"], undefined);
    const run = load(yaml.writeLine(text, base, line));
    assert.equal(at(run, [...base, "command"]).at(-1), line, note);
    assert.deepEqual(put(put(run, [...base, "args"], undefined), [...base, "command"], undefined), shell, note);
    const listed = ["python3", "-c", "print(1)\nprint(2)"];
    assert.deepEqual(load(yaml.writeWords(text, [...base, "args"], listed)), put(object, [...base, "args"], listed), note);
    const rows = at(object, [...base, "env"]) ?? [];
    const env = [...rows, { name: `NAME_${rows.length + 1}`, value: "" }];
    const added = addVariable(text, view.tasks[index].pod.containers.rows[0].env);
    assert.deepEqual(load(added), put(object, [...base, "env"], env), note);
    const without = yaml.removeItem(added, [...base, "env", env.length - 1]);
    assert.deepEqual(load(without), object, `${note}\n---\n${without}`);
  }, 80);
});

test("policies are shown, added, changed and taken away without touching the rest", () => {
  each(({ r, object, text, seed }) => {
    const view = read(text);
    const index = r.below(view.tasks.length + 1);
    const list = index < view.tasks.length ? view.tasks[index].policies : view.policies;
    const written = at(object, list.path) ?? [];
    const note = `seed ${seed} ${list.path}\n${text}`;
    const events = list.rows.map((row) => row.events.map((each) => each.text).filter(Boolean));
    assert.deepEqual(events, written.map((each) => [...(each.event ? [each.event] : []), ...(each.events ?? [])]), note);
    assert.deepEqual(list.rows.map((row) => row.exitCode.text), written.map((each) => String(each.exitCode ?? "")), note);
    const policy = { event: "PodEvicted", action: "RestartPod" };
    const added = yaml.addPolicy(text, list.path, policy);
    assert.deepEqual(load(added), put(object, list.path, [...written, policy]), note);
    const base = [...list.path, written.length];
    const longer = yaml.addEvent(added, base, "PodPending");
    assert.deepEqual(at(load(longer), base), { ...policy, events: ["PodPending"] }, note);
    assert.deepEqual(load(yaml.removeItem(longer, [...base, "events", 0])), load(added), note);
    const late = yaml.write(added, [...base, "timeout"], "10m");
    assert.deepEqual(at(load(late), base), { ...policy, timeout: "10m" }, note);
    assert.deepEqual(load(yaml.write(late, [...base, "timeout"], "")), load(added), note);
    const coded = yaml.answerCode(longer, base, 42);
    assert.deepEqual(at(load(coded), base), { exitCode: 42, action: "RestartPod" }, note);
    assert.deepEqual(load(yaml.answerEvent(coded, base, "PodEvicted")), load(added), note);
    assert.deepEqual(load(yaml.removeItem(coded, base)), object, note);
    assert.deepEqual(comments(coded), comments(text), note);
  }, 120);
});

test("plugins are shown, chosen and left without touching the rest", () => {
  each(({ r, object, text, seed }) => {
    const { chosen } = read(text).plugins;
    const written = object.spec.plugins ?? {};
    const note = `seed ${seed}\n${text}`;
    assert.deepEqual(Object.fromEntries([...chosen].map(([name, { words }]) => [name, words])), Object.fromEntries(Object.entries(written).map(([name, list]) => [name, list ?? []])), note);
    const path = ["spec", "plugins", "ray"];
    const added = yaml.writePlugin(text, "ray", []);
    assert.deepEqual(load(added), put(object, path, []), note);
    const argued = yaml.writePlugin(added, "ray", ["--port=1", ""]);
    assert.deepEqual(load(argued), put(object, path, ["--port=1", ""]), note);
    assert.deepEqual(load(yaml.writePlugin(argued, "ray", ["--port=12", ""])), put(object, path, ["--port=12", ""]), note);
    assert.deepEqual(load(yaml.removePlugin(yaml.writePlugin(argued, "ray", []), "ray")), object, note);
    const [one] = Object.keys(written);
    if (one === undefined) return;
    const left = yaml.removePlugin(text, one);
    assert.equal(at(load(left), ["spec", "plugins", one]), undefined, note);
    assert.deepEqual(load(yaml.removePlugin(yaml.writePlugin(text, r.pick(Object.keys(written)), ["--a"]), "never")).spec.tasks, object.spec.tasks);
  }, 120);
});

test("what a task waits for is shown, added and taken away without touching the rest", () => {
  each(({ r, object, text, seed }) => {
    const view = read(text);
    const index = r.below(view.tasks.length);
    const { path, names, iteration } = view.tasks[index].dependsOn;
    const written = at(object, path);
    const note = `seed ${seed}\n${text}`;
    assert.deepEqual([names.words, iteration.text], [written?.name ?? [], written?.iteration ?? ""], note);
    const more = yaml.writeDependencies(text, path, [...names.words, "more"]);
    assert.deepEqual(load(more), put(object, [...path, "name"], [...names.words, "more"]), note);
    assert.deepEqual(load(yaml.writeDependencies(more, path, [])), put(object, path, undefined), note);
    const any = yaml.write(more, [...path, "iteration"], "any");
    assert.equal(at(load(any), [...path, "iteration"]), "any", note);
  }, 120);
});

test("what is new stands where people look for it", () => {
  const text = "spec:\n  tasks:\n  - name: a\n    replicas: 1\n    template: {}\n";
  const task = ["spec", "tasks", 0];
  const all = [
    (it) => yaml.write(it, [...task, "minAvailable"], "1"),
    (it) => yaml.writeDependencies(it, [...task, "dependsOn"], ["b"]),
    (it) => yaml.addPolicy(it, [...task, "policies"], { event: "PodFailed", action: "RestartTask" }),
    (it) => yaml.addPolicy(it, ["spec", "policies"], { exitCode: 3, action: "AbortJob" }),
    (it) => yaml.write(it, ["spec", "policies", 0, "timeout"], "5m"),
    (it) => yaml.writePlugin(it, "svc", []),
    (it) => yaml.write(it, ["spec", "minSuccess"], "1"),
  ].reduce((it, change) => change(it), text);
  assert.equal(
    all,
    `spec:
  minSuccess: 1
  policies:
  - exitCode: 3
    action: AbortJob
    timeout: 5m
  plugins:
    svc: []
  tasks:
  - name: a
    replicas: 1
    minAvailable: 1
    dependsOn:
      name: ["b"]
    policies:
    - event: PodFailed
      action: RestartTask
    template: {}
`,
  );
});

const TF_JOB = `apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: tf-job
spec:
  # If any event here, restart the whole job.
  policies:
  - event: *
    action: RestartJob
  tasks:
  - name: "ps"
    replicas: 1
    template:
      spec:
        containers:
        - name: ps
          image: ps-img
  ...
`;

test("the documentation's tf-job is read as printed and mended only once the form writes", () => {
  assert.equal(read(TF_JOB).tasks[0].pod.containers.rows[0].image.text, "ps-img");
  const after = yaml.write(TF_JOB, ["spec", "queue"], "team-a");
  assert.equal(after, TF_JOB.replace("event: *", 'event: "*"').replace("  ...", "  # ...").replace("  # If", "  queue: team-a\n  # If"));
});

test("a star or dots inside strings and comments are not mended", () => {
  const text = 'a: "event: *" # event: *\nb: |\n  event: *\n  ...\nc: \'*\'\nd: e ...\n';
  assert.equal(yaml.write(text, ["x"], "1").startsWith(text), true);
});

for (const [name, text, path, why] of [
  ["an alias", "a: &x {name: n}\nmetadata: *x\n", ["metadata", "name"], /alias \*x/],
  ["an anchor used elsewhere", "metadata: &m\n  name: n\nb: *m\n", ["metadata", "name"], /used elsewhere/],
  ["a merge", "a: &x {queue: q}\nspec:\n  <<: *x\n", ["spec", "queue"], /<</],
  ["a wrong type", "spec: [1]\n", ["spec", "queue"], /not a mapping/],
  ["a list for a value", "spec:\n  queue: [a]\n", ["spec", "queue"], /single value/],
]) {
  test(`${name} is said to be foreign to the form and is never written`, () => {
    const view = read(text);
    assert.equal(view.job[path.at(-1)].state, "foreign");
    assert.match(view.job[path.at(-1)].why, why);
    assert.equal(yaml.write(text, path, "x"), text);
  });
}

test("broken YAML keeps the form closed and says the line", () => {
  const view = read("a: 1\nb: [\n");
  assert.equal(view.ok, false);
  assert.match(view.why, /line [23]/);
});

test("a new task on an empty text begins a whole job", () => {
  assert.deepEqual(parse(addTask("")).errors, []);
  assert.equal(load(addTask("")).spec.tasks[0].name, "task-1");
});

test("a list of words becomes a shell line that splits into the same words", () => {
  assert.equal(yaml.shellLine(["python3", "-c", "print('a b')"]), "python3 -c 'print('\\''a b'\\'')'");
});
