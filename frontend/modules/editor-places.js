// Where what the form writes belongs: the order of keys, which parents stay when they are empty, and what is no text.

const ORDER = {
  "": ["apiVersion", "kind", "metadata", "spec", "status"],
  metadata: ["name", "generateName", "namespace", "labels", "annotations"],
  spec: [
    "minAvailable",
    "schedulerName",
    "queue",
    "priorityClassName",
    "maxRetry",
    "minSuccess",
    "ttlSecondsAfterFinished",
    "policies",
    "plugins",
    "networkTopology",
    "volumes",
    "tasks",
  ],
  task: ["name", "replicas", "minAvailable", "maxRetry", "dependsOn", "partitionPolicy", "policies", "template"],
  policy: ["event", "events", "exitCode", "action", "timeout"],
  pod: ["initContainers", "containers", "restartPolicy", "volumes"],
  container: ["name", "image", "workingDir", "command", "args", "env", "ports", "resources", "volumeMounts"],
  jobVolume: ["mountPath", "volumeClaimName", "volumeClaim"],
  volumeMounts: ["name", "mountPath", "subPath", "readOnly"],
  ports: ["name", "containerPort"],
  resources: ["requests", "limits"],
  volumeClaim: ["accessModes", "storageClassName", "resources"],
  partitionPolicy: ["totalPartitions", "partitionSize", "minPartitions", "networkTopology"],
  networkTopology: ["mode", "highestTierAllowed", "highestTierName"],
};
const ITEMS = {
  tasks: "task",
  taskSpecs: "task",
  policies: "policy",
  containers: "container",
  initContainers: "container",
};
const NUMBERS = new Set([
  "replicas",
  "minAvailable",
  "maxRetry",
  "minSuccess",
  "ttlSecondsAfterFinished",
  "exitCode",
  "containerPort",
  "totalPartitions",
  "partitionSize",
  "minPartitions",
  "highestTierAllowed",
]);
const TRUTHS = new Set(["readOnly"]);

// Returns the keys beside the last of path in the order in which people write them.
export function orderAt(path) {
  const parent = path.at(-2);
  if (path.length === 1) return ORDER[""];
  if (typeof parent === "number") {
    const list = path.at(-3);
    if (list === "volumes") return path.length === 4 ? ORDER.jobVolume : ["name"];
    return ORDER[ITEMS[list] ?? list] ?? [];
  }
  if (parent === "spec" && path.length > 2) return ORDER.pod;
  return ORDER[parent] ?? [];
}

// Returns how many steps of path stay although nothing is left in them: the item of a list, and of a volume its kind.
export function keepDepth(path) {
  const item = path.slice(0, -1).findLastIndex((step) => typeof step === "number");
  if (item < 0) return 1;
  return item + (path[item - 1] === "volumes" ? 2 : 1);
}

// Returns what was typed as the value that belongs at path: a number, true, or text.
export function valueAt(path, typed) {
  const key = path.at(-1);
  if (NUMBERS.has(key) && /^-?(0|[1-9]\d{0,14})$/.test(typed)) return Number(typed);
  return TRUTHS.has(key) && typed === "true" ? true : typed;
}
