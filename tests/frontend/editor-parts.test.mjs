import assert from "node:assert/strict";
import { test } from "node:test";
import { parse as load } from "yaml";
import { read } from "../../frontend/modules/editor-model.js";
import * as parts from "../../frontend/modules/editor-parts.js";
import { removeItem, write } from "../../frontend/modules/editor-write.js";
import { at, comments, each, put, texts } from "./samples.mjs";

const podOf = (text, index) => read(text).tasks[index].pod;

test("containers come and go without touching the rest", () => {
  each(({ r, object, text, seed }) => {
    const index = r.below(read(text).tasks.length);
    const pod = podOf(text, index);
    for (const list of ["containers", "initContainers"]) {
      const path = [...pod.path, list];
      const written = at(object, path) ?? [];
      const note = `seed ${seed} ${list}\n${text}`;
      const added = parts.addContainer(text, pod, list);
      const now = load(added);
      assert.deepEqual(put(now, path, written), put(object, path, written), note);
      assert.deepEqual(at(now, path).slice(0, -1), written, note);
      assert.deepEqual(at(now, path).at(-1).resources.requests, { cpu: "100m", memory: "64Mi" });
      const names = [...podOf(added, index).containers.rows, ...podOf(added, index).initContainers.rows];
      assert.equal(new Set(names.map((each) => each.name.text)).size, names.length, note);
      assert.deepEqual(comments(added), comments(text), note);
      assert.deepEqual(load(removeItem(added, [...path, written.length])), object, note);
    }
  }, 50);
});

test("ports and mounts are added, changed and taken away without touching the rest", () => {
  each(({ r, object, text, seed }) => {
    const index = r.below(read(text).tasks.length);
    const [{ ports, mounts }] = podOf(text, index).containers.rows;
    const note = `seed ${seed}\n${text}`;
    const port = [...(at(object, ports.path) ?? []), { containerPort: 8080 }];
    if (!texts(ports, "containerPort").includes("8080")) {
      assert.deepEqual(load(parts.addPort(text, ports)), put(object, ports.path, port), note);
    }
    const count = mounts.rows.length;
    const added = parts.addMount(text, mounts, "d");
    const mount = { name: "d", mountPath: "/mnt/d" };
    assert.deepEqual(load(added), put(object, mounts.path, [...(at(object, mounts.path) ?? []), mount]), note);
    const readOnly = write(added, [...mounts.path, count, "readOnly"], "true");
    assert.deepEqual(at(load(readOnly), [...mounts.path, count]), { ...mount, readOnly: true }, note);
    assert.deepEqual(load(write(readOnly, [...mounts.path, count, "readOnly"], "")), load(added), note);
    assert.deepEqual(load(removeItem(readOnly, [...mounts.path, count])), object, note);
  }, 50);
});

test("a volume of a task comes with a mount, is renamed with it and goes with it", () => {
  each(({ r, object, text, seed }) => {
    const index = r.below(read(text).tasks.length);
    const pod = podOf(text, index);
    const note = `seed ${seed}\n${text}`;
    const added = parts.addVolume(text, pod);
    const volume = podOf(added, index).volumes.rows.at(-1);
    assert.equal(volume.fields.name.text, "data", note);
    const [container] = podOf(added, index).containers.rows;
    assert.deepEqual(at(load(added), [...container.mounts.path]).at(-1), { name: "data", mountPath: "/mnt/data" }, note);
    const renamed = parts.renameVolume(added, podOf(added, index), volume, "cache");
    assert.equal(at(load(renamed), container.mounts.path).at(-1).name, "cache", note);
    assert.equal(at(load(renamed), pod.volumes.path).at(-1).name, "cache", note);
    const back = podOf(renamed, index);
    assert.deepEqual(load(parts.removeVolume(renamed, back, back.volumes.rows.at(-1))), object, note);
    assert.deepEqual(comments(renamed), comments(text), note);
  }, 50);
});

for (const [kind, source] of [
  ["configMap", { name: "x" }],
  ["secret", { secretName: "x" }],
  ["persistentVolumeClaim", { claimName: "x" }],
  ["hostPath", { path: "x" }],
]) {
  test(`a volume becomes a ${kind} and an empty directory again`, () => {
    const text = parts.addVolume("spec:\n  tasks:\n  - template: {spec: {containers: [{name: a}]}}\n", read("spec: {tasks: [{}]}").tasks[0].pod);
    const volume = (it) => podOf(it, 0).volumes.rows[0];
    const changed = parts.changeVolume(text, volume(text), kind);
    const named = write(changed, volume(changed).fields.source.path, "x", { stays: true });
    assert.deepEqual(load(named).spec.tasks[0].template.spec.volumes, [{ name: "data", [kind]: source }]);
    assert.deepEqual(load(parts.changeVolume(named, volume(named), "emptyDir")), load(text));
  });
}

for (const [name, volume, why] of [
  ["an unknown kind", "projected: {sources: []}", /of the kind projected/],
  ["two kinds", "emptyDir: {}, secret: {secretName: a}", /of the kind emptyDir and secret/],
]) {
  test(`${name} of a volume is said to be foreign to the form and is never written`, () => {
    const text = `spec: {tasks: [{template: {spec: {volumes: [{name: a, ${volume}}]}}}]}\n`;
    const [row] = podOf(text, 0).volumes.rows;
    assert.equal(row.fields.kind.state, "foreign");
    assert.match(row.fields.kind.why, why);
    assert.equal(parts.changeVolume(text, row, "configMap"), text);
  });
}

test("the volumes of a job are added, become of another kind and go without touching the rest", () => {
  each(({ object, text, seed }) => {
    const { volumes } = read(text);
    const written = at(object, volumes.path) ?? [];
    const note = `seed ${seed}\n${text}`;
    const row = (it) => read(it).volumes.rows[written.length];
    const claim = { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } };
    const added = parts.addJobVolume(text, volumes);
    assert.deepEqual(load(added), put(object, volumes.path, [...written, { mountPath: "/data", volumeClaim: claim }]), note);
    const larger = write(added, row(added).fields.storage.path, "5Gi");
    assert.equal(row(larger).fields.storage.text, "5Gi", note);
    assert.equal(row(write(larger, row(larger).fields.storage.path, "")).fields.kind.text, "volumeClaim", note);
    const named = parts.changeJobVolume(larger, row(larger), "volumeClaimName");
    const found = write(named, row(named).fields.volumeClaimName.path, "disk");
    assert.deepEqual(at(load(found), volumes.path).at(-1), { mountPath: "/data", volumeClaimName: "disk" }, note);
    const bare = parts.changeJobVolume(found, row(found), "none");
    assert.deepEqual(at(load(bare), volumes.path).at(-1), { mountPath: "/data" }, note);
    assert.deepEqual(load(removeItem(bare, [...volumes.path, written.length])), object, note);
  }, 50);
});
