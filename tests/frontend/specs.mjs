// Generated jobs: valid specs with fields that the form does not know, written in many YAML styles.

import { isDeepStrictEqual } from "node:util";
import { Document, isMap, isPair, isScalar, parse, visit } from "yaml";

// Returns a random number generator that gives the same jobs for the same seed.
export function random(seed) {
  let state = (seed * 2654435761 + 1) >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const below = (n) => Math.floor(next() * n);
  return { below, chance: (p) => next() < p, pick: (list) => list[below(list.length)] };
}

const TEXTS = [
  "busybox", "python:3.11", "no", "on", "010", "1e3", "1:30", "", "*", "a: b", "- x", "# not a comment", "it's",
  'say "hi"', "two\nlines", "three\nlines\n", "  indented\nblock", "tab\tinside", "émoji 🌋", "null", "~", "{a}", "[b]",
  "echo $HOME && sleep 1 | wc -l", "trailing ", "@at", "`tick`", "%percent", "...", "---", "x\u0085y", "\u2028", "$(A)", "0x1f", "!tag",
];
const QUANTITIES = ["1", "500m", "2Gi", "1.5", "100M", "3e2", "0"];

function container(r, name) {
  const it = { name, image: r.pick(TEXTS) };
  if (r.chance(0.6)) it.command = r.pick([["sh", "-c", r.pick(TEXTS)], ["python3", "-c", "for i in range(3):\n    print(i)\n"], [r.pick(TEXTS), r.pick(TEXTS)]]);
  if (r.chance(0.3)) it.args = [r.pick(TEXTS), r.pick(TEXTS)];
  if (r.chance(0.5)) it.env = Array.from({ length: 1 + r.below(3) }, (_, i) => ({ name: `V${i}`, value: r.pick(TEXTS) }));
  if (r.chance(0.2)) (it.env ??= []).push({ name: "S", valueFrom: { secretKeyRef: { name: "s", key: "k" } } });
  if (r.chance(0.6)) {
    it.resources = { requests: { cpu: r.pick(QUANTITIES) } };
    if (r.chance(0.5)) it.resources.limits = { memory: r.pick(QUANTITIES), "nvidia.com/gpu": "1" };
  }
  if (r.chance(0.3)) it.volumeMounts = [{ mountPath: "/data", name: "d" }];
  if (r.chance(0.2)) (it.volumeMounts ??= []).push({ name: "conf", mountPath: r.pick(TEXTS), readOnly: true, subPath: "a/b" });
  if (r.chance(0.2)) it.ports = [{ containerPort: 80 + r.below(9), protocol: "TCP" }, { name: "web", containerPort: 8080 }].slice(r.below(2));
  if (r.chance(0.2)) it.workingDir = "/tmp";
  return it;
}

const VOLUMES = [
  { name: "d", emptyDir: {} },
  { name: "d", emptyDir: { medium: "Memory" } },
  { name: "d" },
  { name: "conf", configMap: { name: "settings", items: [{ key: "a", path: "b" }] } },
  { name: "keys", secret: { secretName: "no" } },
  { name: "disk", persistentVolumeClaim: { claimName: "data", readOnly: true } },
  { name: "log", hostPath: { path: "/var/log", type: "Directory" } },
  { name: "told", projected: { sources: [{ configMap: { name: "a" } }] } },
];
const JOB_VOLUMES = [
  { mountPath: "/here" },
  { mountPath: "/there", volumeClaimName: "data" },
  { mountPath: "/new", volumeClaim: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "2Gi" } } } },
  { mountPath: "/two", volumeClaim: { accessModes: ["ReadWriteOnce", "ReadOnlyMany"], storageClassName: "fast" } },
];

// Returns some of a list, at least one, each as an object of its own.
function some(r, list) {
  const first = r.below(list.length);
  return structuredClone(list.filter((_, index) => index === first || r.chance(0.3)));
}

function task(r, index) {
  const it = { name: `task-${index}`, replicas: r.below(9) };
  if (r.chance(0.3)) it.policies = [{ event: "*", action: "RestartJob" }];
  else if (r.chance(0.3)) it.policies = [{ exitCode: 3, action: "AbortJob" }, { events: ["PodFailed", "Unknown"], action: "RestartTask", timeout: "5m" }];
  if (r.chance(0.2)) it.dependsOn = { name: ["task-0"], iteration: "any" };
  it.template = { spec: { containers: [container(r, `main-${index}`)] } };
  if (r.chance(0.2)) it.template.spec.containers.push(container(r, "side"));
  if (r.chance(0.2)) it.template.spec.initContainers = [container(r, "init")];
  if (r.chance(0.3)) it.template.spec.volumes = some(r, VOLUMES);
  if (r.chance(0.2)) it.partitionPolicy = { totalPartitions: 2, partitionSize: 3, networkTopology: { mode: "soft" } };
  if (r.chance(0.4)) it.template.spec.restartPolicy = r.pick(["Never", "OnFailure", "Always"]);
  if (r.chance(0.3)) it.template.spec.nodeSelector = { "kubernetes.io/arch": "amd64", [r.pick(["on", "zone", "a b"])]: r.pick(TEXTS) };
  if (r.chance(0.2)) it.template.metadata = { annotations: { "example.com/note": r.pick(TEXTS) } };
  return it;
}

export function job(r) {
  const it = { apiVersion: "batch.volcano.sh/v1alpha1", kind: "Job", metadata: { name: `job-${r.below(99)}` }, spec: {} };
  if (r.chance(0.4)) it.metadata.labels = { team: r.pick(TEXTS) };
  if (r.chance(0.4)) it.metadata.namespace = "default";
  if (r.chance(0.5)) it.spec.minAvailable = r.below(5);
  if (r.chance(0.5)) it.spec.queue = r.pick(["default", "team-a"]);
  if (r.chance(0.3)) it.spec.plugins = { ssh: [], env: [], svc: ["--disable-network-policy=true"], mpi: null };
  if (r.chance(0.2)) it.spec.futureField = { deep: [1, { x: null }, [true, 2.5]] };
  if (r.chance(0.3)) it.spec.policies = [{ event: "PodFailed", action: "AbortJob", timeout: "5m" }];
  if (r.chance(0.2)) it.spec.networkTopology = { mode: "hard", ...r.pick([{ highestTierAllowed: 2 }, { highestTierName: "rack" }]) };
  if (r.chance(0.3)) it.spec.volumes = some(r, JOB_VOLUMES);
  it.spec[r.chance(0.2) ? "taskSpecs" : "tasks"] = Array.from({ length: 1 + r.below(4) }, (_, i) => task(r, i));
  return it;
}

// Returns a job as YAML text: flow and block, three kinds of quotes, comments and blank lines at random places.
export function write(r, object) {
  const doc = new Document(object);
  visit(doc, {
    Scalar(role, node) {
      if (typeof node.value !== "string" || r.chance(0.7)) return;
      const quotes = ["QUOTE_DOUBLE", "QUOTE_SINGLE"];
      node.type = r.pick(role === "key" ? quotes : [...quotes, "BLOCK_LITERAL", "BLOCK_FOLDED"]);
    },
    Collection(_, node) {
      if (r.chance(0.08)) node.flow = true;
    },
    Pair(_, pair) {
      if (isScalar(pair.key) && r.chance(0.1)) pair.key.commentBefore = ` about ${String(pair.key)}`;
      if (isPair(pair) && isScalar(pair.value) && r.chance(0.1)) pair.value.comment = " beside";
      if (isScalar(pair.key) && isMap(pair.value) && r.chance(0.05)) pair.key.spaceBefore = true;
    },
  });
  const text = doc.toString({ lineWidth: r.pick([0, 60]), indentSeq: r.chance(0.5) });
  // Some blanks before folded lines do not survive the yaml package's own printing.
  return isDeepStrictEqual(parse(text), object) ? text : new Document(object).toString();
}
