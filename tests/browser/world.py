"""A small cluster worth looking at: jobs in every state, queues, real and simulated nodes."""

from __future__ import annotations

from cluster.writes import Create
from kube.resources import CRON_JOBS, JOB_FLOWS, JOB_TEMPLATES, PRIORITY_CLASSES, QUEUES
from tests.system.work import Person, Watcher, job, shell, task
from tests.waiting import HANG_S, until

SIMULATED = {"ui.volcano.sh/simulated": "true"}
TICKS = "i=0; while :; do i=$((i+1)); echo tick $i; sleep 0.2; done"
PASTE = """
(box, text) => {
  const clipboardData = new DataTransfer();
  clipboardData.setData("text/plain", text);
  box.dispatchEvent(new ClipboardEvent("paste", {clipboardData, bubbles: true, cancelable: true}));
}
"""
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
WIDE = {"width": 1360, "height": 860}


def furnish(system):
    """Submit jobs that end well, fail, wait and run, and make queues; return once each is as it should be."""
    with Person(system) as person, system.store() as store:
        watcher = Watcher(store)
        for name, weight in (("training", "4"), ("batch", "1")):
            assert person.post("/queues/-/new/", name=name, weight=weight).status_code == 302
        person.create(job("finished", shell("echo all is done; sleep 1", replicas=2), queue="training"))
        person.create(
            job(
                "failed",
                shell("sleep 1"),
                shell("echo it broke >&2; exit 3", name="broken"),
                maxRetry=0,
            )
        )
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
        made = person.post(
            "/sweeps/-/new/", text=TUNING, do="submit", **{"grid-rate": "1, 2", "grid-size": "3, 4, 5"}
        )
        assert made.status_code == 302
        person.create(job("loops", shell("exit 1", restartPolicy="Always")))
        person.create(job("resumed", shell(TICKS, replicas=2, terminationGracePeriodSeconds=0)))
        again = [{"event": "PodFailed", "action": "RestartJob"}]
        person.create(job("restarted", shell("sleep 0.5; exit 2", replicas=2), policies=again, maxRetry=2))
        person.create(job("gone", shell("echo the last words; exit 4"), maxRetry=0))
        store.write(*(Create(*each) for each in makers()))
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


def contend(person, store, watcher):
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


def operate(person):
    """Prepare two bulk operations and confirm the second."""
    pages = [
        person.post("/jobs/-/operations/", action=action, which="all", q=text).headers["location"]
        for action, text in (("delete", "guarded"), ("suspend", "fa"))
    ]
    assert person.post(f"{pages[1]}confirm/").status_code == 302


def outlive(person, watcher):
    """Let a job have a second run, and delete another."""
    person.post("/jobs/default/resumed/suspend/")
    watcher.reaches("resumed", "Aborted")
    person.post("/jobs/default/resumed/resume/")
    watcher.reaches("resumed", "Running")
    person.post("/jobs/default/gone/delete/")
    until(lambda: watcher.job("gone") is None)


def makers():
    """Return what makes jobs: two templates, a flow of them and a third that is missing, a cron job."""
    specs = {name: {"tasks": [shell(line)]} for name, line in (("extract", "sleep 1"), ("train", TICKS))}
    flows = [
        {"name": "extract"},
        {"name": "train", "dependsOn": {"targets": ["extract"]}},
        {"name": "publish", "dependsOn": {"targets": ["train"]}},
    ]
    cron = {"schedule": "0 2 * * *", "timeZone": "Europe/Berlin", "jobTemplate": {"spec": specs["extract"]}}

    def named(name, spec):
        return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}

    yield from ((JOB_TEMPLATES, named(name, spec)) for name, spec in specs.items())
    yield JOB_FLOWS, named("nightly", {"flows": flows})
    yield CRON_JOBS, named("report", cron)


def nap(replicas, seconds=3600):
    """Return a task of simulated pods."""
    note = {"ui.volcano.sh/duration-seconds": str(seconds)}
    return task(
        ["sleep", str(seconds)],
        name="nap",
        replicas=replicas,
        cpu="1",
        annotations=note,
        nodeSelector=SIMULATED,
    )


def write(page, text):
    """Select the whole text of the YAML editor and paste another one over it."""
    box = page.locator(".cm-content")
    box.click()
    page.keyboard.press("ControlOrMeta+a")
    box.evaluate(PASTE, text)


def yaml_of(page):
    """Return what the job editor would submit."""
    return page.locator("textarea[name=text]").input_value()


def enter(browser, system, *, theme="", cookies=None, **options):
    """Open a window of somebody who is logged in, by default the administrator."""
    context = browser.new_context(base_url=system.base, viewport=WIDE, **options)
    context.set_default_timeout(HANG_S * 1000)
    wanted = dict(system.cookies if cookies is None else cookies)
    if theme:
        wanted["theme"] = theme
    if wanted:
        context.add_cookies([{"name": n, "value": v, "url": system.base} for n, v in wanted.items()])
    return context
