// What the form shows of a job's YAML, as fields of editor-node.js.

import { isMap } from "yaml";
import { mend } from "./editor-mend.js";
import { field, list, mapping, words } from "./editor-node.js";
import { items, readJobVolume, readPod } from "./editor-pod.js";
import { parse } from "./editor-text.js";

const POD = ["template", "spec"];

// Returns the form's view of a text: {ok, why, job, policies, plugins, volumes, tasks}.
export function read(text) {
  const doc = parse(mend(text).text);
  if (doc.errors.length > 0) {
    const [{ linePos, message }] = doc.errors;
    const line = linePos?.[0].line ?? 1;
    return {
      ok: false,
      line,
      why: `The YAML cannot be read from line ${line} on: ${message.split(" at line")[0]}.`,
    };
  }
  if (doc.contents !== null && !isMap(doc.contents)) {
    return { ok: false, line: 1, why: "The YAML is not a job: it has to begin with apiVersion and kind." };
  }
  const path = tasksPath(doc);
  const found = items(doc, path, readTask);
  return {
    ok: true,
    job: readJob(doc),
    policies: items(doc, ["spec", "policies"], readPolicy),
    plugins: readPlugins(doc),
    volumes: items(doc, ["spec", "volumes"], readJobVolume),
    tasks: found.rows,
    tasksPath: path,
    tasksWhy: found.state === "foreign" ? `The tasks are shown only in the YAML: ${found.why}` : "",
  };
}

function readJob(doc) {
  const at = (...path) => field(doc, path);
  return {
    name: at("metadata", "name"),
    namespace: at("metadata", "namespace"),
    queue: at("spec", "queue"),
    minAvailable: at("spec", "minAvailable"),
    priorityClassName: at("spec", "priorityClassName"),
    maxRetry: at("spec", "maxRetry"),
    minSuccess: at("spec", "minSuccess"),
    ttlSecondsAfterFinished: at("spec", "ttlSecondsAfterFinished"),
    mode: at("spec", "networkTopology", "mode"),
    highestTierAllowed: at("spec", "networkTopology", "highestTierAllowed"),
    highestTierName: at("spec", "networkTopology", "highestTierName"),
  };
}

function readTask(doc, base) {
  const at = (...path) => field(doc, [...base, ...path]);
  return {
    path: base,
    name: at("name"),
    replicas: at("replicas"),
    minAvailable: at("minAvailable"),
    maxRetry: at("maxRetry"),
    policies: items(doc, [...base, "policies"], readPolicy),
    dependsOn: {
      path: [...base, "dependsOn"],
      names: words(doc, [...base, "dependsOn", "name"]),
      iteration: at("dependsOn", "iteration"),
    },
    totalPartitions: at("partitionPolicy", "totalPartitions"),
    partitionSize: at("partitionPolicy", "partitionSize"),
    minPartitions: at("partitionPolicy", "minPartitions"),
    partitionMode: at("partitionPolicy", "networkTopology", "mode"),
    partitionTierAllowed: at("partitionPolicy", "networkTopology", "highestTierAllowed"),
    partitionTierName: at("partitionPolicy", "networkTopology", "highestTierName"),
    restartPolicy: at(...POD, "restartPolicy"),
    simulated: at(...POD, "nodeSelector", "ui.volcano.sh/simulated"),
    seconds: at("template", "metadata", "annotations", "ui.volcano.sh/duration-seconds"),
    pod: readPod(doc, [...base, ...POD]),
  };
}

function tasksPath(doc) {
  const older = doc.hasIn(["spec", "taskSpecs"]) && !doc.hasIn(["spec", "tasks"]);
  return ["spec", older ? "taskSpecs" : "tasks"];
}

// Returns a policy. Its events are those of event and of events.
function readPolicy(doc, path) {
  const at = (...rest) => field(doc, [...path, ...rest]);
  const more = list(doc, [...path, "events"]);
  const listed = Array.from({ length: more.count }, (_, index) => at("events", index));
  const single = at("event");
  const events = [...(single.state === "unset" ? [] : [single]), ...listed];
  const [exitCode, action, timeout] = ["exitCode", "action", "timeout"].map((name) => at(name));
  const odd = [mapping(doc, path), more, ...events, exitCode, timeout].find((each) => each.state === "foreign");
  return { path, why: odd?.why ?? "", events: events.length > 0 ? events : [single], exitCode, action, timeout };
}

// Returns the plugins: {path, state, why, chosen}, where chosen holds the arguments of each by its name.
function readPlugins(doc) {
  const path = ["spec", "plugins"];
  const { keys, ...found } = mapping(doc, path);
  return { ...found, chosen: new Map(keys.map((name) => [name, words(doc, [...path, name])])) };
}
