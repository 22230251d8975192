"""A small cluster worth looking at: jobs in every state, queues, real and simulated nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from playwright._impl._api_structures import SetCookieParam  # which playwright shows nowhere else
from playwright.sync_api import Browser, BrowserContext, ViewportSize
from playwright.sync_api import Page as WindowPage

from cluster.store import Store
from cluster.writes import Create, Patch
from kube.meta import Object
from kube.resources import (
    BATCH_JOBS,
    CRON_JOBS,
    HYPER_NODES,
    JOB_FLOWS,
    JOB_TEMPLATES,
    NAMESPACES,
    NODES,
    PRIORITY_CLASSES,
    QUEUES,
    RESOURCE_QUOTAS,
    Resource,
)
from proof.harness.waiting import HANG_S, until
from proof.systems.system import System
from proof.systems.work import Page, Person, Watcher, job, shell, task

SIMULATED = {"ui.volcano.sh/simulated": "true"}
TICKS = "i=0; while :; do i=$((i+1)); echo tick $i; sleep 0.2; done"
PASTE = """
(box, text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", text);
  box.dispatchEvent(new ClipboardEvent("paste", {clipboardData, bubbles: true, cancelable: true}));
}
"""
OF_KUBERNETES = {
    "metadata": {"name": "pi", "namespace": "default"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}},
}
GUARDED = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: guarded
  namespace: default
spec:
  minAvailable: 1
  policies:
  - events: [PodFailed, PodEvicted]
    action: RestartTask
    timeout: 5m
  - exitCode: 300  # stays
    action: AbortJob
  plugins:
    pytorch: ["--master=prep"]
  tasks:
  - name: prep
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: busybox, command: ["true"]}
  - name: train
    replicas: 2
    dependsOn:
      name: [prep]
    policies:
    - event: TaskCompleted
      action: CompleteJob
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: busybox, command: ["true"]}
"""
EQUIPPED = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: equipped
  namespace: default
spec:
  queue: training
  networkTopology: {mode: soft, highestTierAllowed: 2}
  volumes:
  - mountPath: /made
    volumeClaim: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  - mountPath: /there
    volumeClaimName: lost
  tasks:
  - name: prep
    replicas: 2
    template:
      spec:
        restartPolicy: Never
        initContainers:
        - {name: init, image: busybox, command: ["true"]}
        containers:
        - name: main
          image: busybox
          command: ["sh", "-c", "echo hello"]
          env: [{name: WORD, value: hello}, {name: KEY, valueFrom: {secretKeyRef: {name: keys, key: a}}}]
          ports: [{containerPort: 8080, name: web}]
          volumeMounts: [{name: settings, mountPath: /settings, readOnly: true}]
        - {name: sidecar, image: busybox, command: ["true"]}
        volumes:
        - {name: settings, configMap: {name: settings}}
        - {name: told, projected: {sources: []}}
  - name: train
    replicas: 4
    partitionPolicy: {totalPartitions: 2, partitionSize: 2, minPartitions: 1}
    dependsOn: {name: [prep]}
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: busybox, command: ["true"]}
"""
TUNING = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: tuning
  namespace: default
spec:
  queue: batch
  tasks:
  - name: main
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        containers:
        - name: main
          image: busybox
          command: ["sh", "-c", "echo rate {{rate}}, size {{size}}"]
          resources:
            requests:
              cpu: 50m
"""
MOVING = """\
actions: enqueue, allocate, shuffle
tiers:
- plugins:
  - name: nodeorder
  - name: rescheduling
    arguments:
      interval: 1s
      strategies:
      - name: lowNodeUtilization
        params: {thresholds: {cpu: 10}, targetThresholds: {cpu: 12}}
"""
CONFIGURED = """\
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    arguments:
      reservation-wait: %s
  - name: pdb
  - name: sla
    arguments:
      sla-waiting-time: 12h
- plugins:
  - name: overcommit
    arguments:
      overcommit-factor: 1.5
  - name: binpack
    arguments:
      binpack.weight: 10
  - name: task-topology
  - name: tdm
    arguments:
      tdm.revocable-zone.day: "06:00-18:00"
      tdm.evict.period: 90s
"""
HYPER = {
    "rack-1": (1, "rack", "Node", ("sim-0001", "sim-0002")),
    "rack-2": (1, "rack", "Node", ("sim-0003", "sim-0004")),
    "rack-3": (1, "rack", "Node", ("sim-0005", "sim-0006")),
    "rack-4": (1, "rack", "Node", ("sim-0007", "sim-0008")),
    "row-1": (2, "row", "HyperNode", ("rack-1", "rack-2")),
    "row-2": (2, "row", "HyperNode", ("rack-3", "rack-4")),
    "hall": (3, "hall", "HyperNode", ("row-1", "row-2")),
    "spare": (1, "rack", "Node", ("gpu-1",)),
}
WIDE: ViewportSize = {"width": 1360, "height": 860}


def furnish(system: System) -> None:
    """Submit jobs that end well, fail, wait and run, and make queues; return once each is as it should be."""
    with Person(system) as person, system.store() as store:
        watcher = Watcher(store)
        move(person, store, watcher)
        for name, weight in (("training", "4"), ("batch", "1")):
            assert person.post("/queues/-/new/", name=name, weight=weight).status_code == 302
        person.create(job("finished", shell("echo all is done; sleep 1", replicas=2), queue="training"))
        person.create(job("failed", shell("sleep 1"), shell("echo it broke >&2; exit 3", name="broken"), maxRetry=0))
        person.create(job("running", shell(TICKS, terminationGracePeriodSeconds=0), queue="training"))
        person.create(
            job(
                "guarded",
                shell(TICKS, terminationGracePeriodSeconds=0),
                policies=[
                    {"events": ["PodFailed", "PodEvicted"], "action": "RestartJob"},
                    {"event": "JobUpdated", "action": "AbortJob"},
                ],
                plugins={"env": [], "svc": ["--inject-hosts-env=false"]},
            )
        )
        person.create(job("waiting", shell("exit 0", name="giant", replicas=4, cpu="640")))
        person.create(job("sweep", nap(40), minimum=10, queue="batch"))
        made = person.post("/sweeps/-/new/", text=TUNING, do="submit", **{"grid-rate": "1, 2", "grid-size": "3, 4, 5"})
        assert made.status_code == 302
        person.create(job("loops", shell("exit 1", restartPolicy="Always")))
        person.create(job("resumed", shell(TICKS, replicas=2, terminationGracePeriodSeconds=0)))
        again = [{"event": "PodFailed", "action": "RestartJob"}]
        person.create(job("restarted", shell("sleep 0.5; exit 2", replicas=2), policies=again, maxRetry=2))
        person.create(job("gone", shell("echo the last words; exit 4"), maxRetry=0))
        store.write(*(Create(*each) for each in makers()), Create(BATCH_JOBS, OF_KUBERNETES))
        # The next configuration packs pods: forty that come under it would fill a node that another job is to miss by its rack alone.
        until(lambda: places(watcher, "sweep").total() == 40, what=lambda: f"40 pods, {places(watcher, 'sweep')},")
        keep_waiting(person, store, watcher)
        contend(person, store, watcher)
        for name, phase in (
            ("resumed", "Running"),
            ("gone", "Failed"),
            ("finished", "Completed"),
            ("failed", "Failed"),
            ("restarted", "Failed"),
            ("running", "Running"),
            ("guarded", "Running"),
            ("nightly-train", "Running"),
        ):
            watcher.reaches(name, phase)
        operate(person)
        outlive(person, watcher)


def configure(person: Person, text: str) -> None:
    """Save a configuration of the scheduler on its page."""
    path = "/queues/-/scheduler/"
    fields = Page(person.get(path).text).forms[path]
    assert person.post(path, **fields | {"text": text, "do": "save"}).status_code == 302


def label(store: Store, node: str, **labels: str) -> None:
    """Label a node."""
    store.write(Patch(NODES, "", node, {"metadata": {"labels": labels}}))


def move(person: Person, store: Store, watcher: Watcher) -> None:
    """Let pods of a job go from a node above its target to another one."""
    configure(person, MOVING)
    label(store, "sim-0003", pool="wide")
    person.create(job("moved", nap(6, on={"pool": "wide"}), minimum=1))
    watcher.reaches("moved", "Running")
    until(lambda: places(watcher, "moved") == {"sim-0003": 6}, what="a full node")
    label(store, "sim-0002", pool="wide")
    until(lambda: places(watcher, "moved") == {"sim-0003": 3, "sim-0002": 3}, what="three pods that moved")


def places(watcher: Watcher, name: str) -> Counter[str | None]:
    """Return how many pods of a job run on which nodes."""
    pods = watcher.pods(name).values()
    return Counter(pod["spec"].get("nodeName") for pod in pods if pod["status"].get("phase") == "Running")


def keep_waiting(person: Person, store: Store, watcher: Watcher) -> None:
    """Have a network of three tiers, and jobs that wait for a quota, a revocable zone, a HyperNode and a reservation."""
    await_room(person, store, watcher)
    configure(person, CONFIGURED % "10m")
    for name, (tier, tier_name, kind, names) in HYPER.items():
        members = [{"type": kind, "selector": {"exactMatch": {"name": each}}} for each in names]
        spec = {"tier": tier, "tierName": tier_name, "members": members}
        store.write(Create(HYPER_NODES, {"metadata": {"name": name}, "spec": spec}))
    team = {"metadata": {"name": "bound", "namespace": "team"}, "spec": {"hard": {"requests.cpu": "4"}}}
    store.write(Create(NAMESPACES, {"metadata": {"name": "team"}, "status": {"phase": "Active"}}))
    store.write(Create(RESOURCE_QUOTAS, team))
    person.create(job("within", nap(2), namespace="team"))
    until(lambda: phase_of(watcher, "within", "team") == "Running", what="the job within the quota")
    person.create(job("bounded", nap(3), namespace="team"))
    label(store, "sim-0004", **{"volcano.sh/revocable-zone": "night"})
    zone = {"volcano.sh/revocable-zone": "night"}
    person.create(job("nightly-only", nap(1, on=zone)))
    close = {"mode": "hard", "highestTierAllowed": 1}
    person.create(job("close-together", nap(3, memory="200Gi"), networkTopology=close))
    await_reason(watcher, "nightly-only", "RevocableZone")
    await_reason(watcher, "close-together", "NetworkTopology")
    await_reason(watcher, "bounded", "QuotaExceeded", "team")


def await_room(person: Person, store: Store, watcher: Watcher) -> None:
    """Let a job have room kept for it on a node of which another one says that it has it until tomorrow."""
    configure(person, CONFIGURED % "1s")
    label(store, "sim-0005", pool="large")
    large: dict[str, Any] = {"queue": "training", "runningEstimate": "24h"}
    person.create(job("large", nap(1, on={"pool": "large"}, memory="200Gi"), **large))
    watcher.reaches("large", "Running")
    person.create(job("patient", nap(1, on={"pool": "large"}, memory="200Gi"), **large))
    await_reason(watcher, "patient", "Reserved")


def await_reason(watcher: Watcher, name: str, reason: str, namespace: str = "default") -> None:
    """Return once a job waits for a reason; what is told when it does not is how it waits instead."""

    def status() -> Mapping[str, Any]:
        return (watcher.job(name, namespace) or {}).get("status") or {}

    until(lambda: status().get("waitingReason") == reason, what=lambda: f"{reason} of {name}, {status()},")


def phase_of(watcher: Watcher, name: str, namespace: str) -> str | None:
    """Return the phase of a job."""
    found: str | None = ((watcher.job(name, namespace) or {}).get("status") or {}).get("state", {}).get("phase")
    return found


def contend(person: Person, store: Store, watcher: Watcher) -> None:
    """Let a gang lose the room of a small queue to a job of higher priority."""
    store.write(
        Create(QUEUES, {"metadata": {"name": "contested"}, "spec": {"capability": {"cpu": "2"}}}),
        Create(PRIORITY_CLASSES, {"metadata": {"name": "urgent"}, "value": 1000}),
    )
    person.create(job("preempted", nap(2), queue="contested"))
    watcher.reaches("preempted", "Running")
    person.create(job("urgent", nap(1), queue="contested", priorityClassName="urgent"))
    watcher.reaches("urgent", "Running")
    watcher.reaches("preempted", "Pending")


def operate(person: Person) -> None:
    """Prepare two bulk operations and confirm the second."""
    pages = [
        person.post("/jobs/-/operations/", action=action, which="all", q=text).headers["location"]
        for action, text in (("delete", "guarded"), ("suspend", "fa"))
    ]
    assert person.post(f"{pages[1]}confirm/").status_code == 302


def outlive(person: Person, watcher: Watcher) -> None:
    """Let a job have a second run, and delete another."""
    person.post("/jobs/default/resumed/suspend/")
    watcher.reaches("resumed", "Aborted")
    person.post("/jobs/default/resumed/resume/")
    watcher.reaches("resumed", "Running")
    person.post("/jobs/default/gone/delete/")
    until(lambda: watcher.job("gone") is None)


def makers() -> Iterator[tuple[Resource, Object]]:
    """Return what makes jobs: two templates, a flow of them and a third that is missing, a cron job."""
    specs = {name: {"tasks": [shell(line)]} for name, line in (("extract", "sleep 1"), ("train", TICKS))}
    flows = [
        {"name": "extract"},
        {"name": "train", "dependsOn": {"targets": ["extract"]}},
        {"name": "publish", "dependsOn": {"targets": ["train"]}},
    ]
    cron = {"schedule": "0 2 * * *", "timeZone": "Europe/Berlin", "jobTemplate": {"spec": specs["extract"]}}

    def named(name: str, spec: Mapping[str, Any]) -> Object:
        return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}

    yield from ((JOB_TEMPLATES, named(name, spec)) for name, spec in specs.items())
    yield JOB_FLOWS, named("nightly", {"flows": flows})
    yield CRON_JOBS, named("report", cron)


def nap(
    replicas: int, seconds: int = 3600, on: Mapping[str, str] | None = None, memory: str = "16Mi"
) -> dict[str, Any]:
    """Return a task of simulated pods."""
    note = {"ui.volcano.sh/duration-seconds": str(seconds)}
    return task(
        ["sleep", str(seconds)],
        name="nap",
        replicas=replicas,
        cpu="1",
        memory=memory,
        annotations=note,
        nodeSelector={**SIMULATED, **(on or {})},
    )


def write(page: WindowPage, text: str) -> None:
    """Select the whole text of the YAML editor and paste another one over it."""
    box = page.locator(".cm-content")
    box.click()
    page.keyboard.press("ControlOrMeta+a")
    box.evaluate(PASTE, text)


def yaml_of(page: WindowPage) -> str:
    """Return what the job editor would submit."""
    return page.locator("textarea[name=text]").input_value()


def enter(
    browser: Browser, system: System, *, theme: str = "", cookies: Mapping[str, str] | None = None, **options: Any
) -> BrowserContext:
    """Open a window of somebody who is logged in, by default the administrator."""
    context = browser.new_context(base_url=system.base, viewport=WIDE, **options)
    context.set_default_timeout(HANG_S * 1000)
    if wanted := cookies_of(system, cookies, theme=theme):
        context.add_cookies(wanted)
    return context


def cookies_of(system: System, cookies: Mapping[str, str] | None = None, *, theme: str = "") -> list[SetCookieParam]:
    """Return the cookies of somebody who is logged in, by default the administrator, for a browser."""
    held = system.cookies if cookies is None else cookies
    assert held is not None, "nobody has logged in"
    wanted = dict(held)
    if theme:
        wanted["theme"] = theme
    return [{"name": name, "value": value, "url": system.base} for name, value in wanted.items()]
