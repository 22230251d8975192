"""Lives of a job in words under the real controller and the real recorder: its record, and what its pages say."""

import yaml

from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, Patch, decisions, records, store
from cluster.writes import Decision
from jobs.history import record
from kube.events import event
from kube.kinds.batch import Action
from kube.meta import now_text
from kube.resources import CONFIGMAPS, EVENTS, JOBS, POD_GROUPS, PODS
from kube.volcano.evictions import FIRST_EVICTED
from tests.builders import config_map
from tests.jobs import control
from tests.jobs.control import resize, task
from tests.jobs.made import runner, settle
from tests.jobs.pages import world
from tests.jobs.pages.job_page import JobPage
from tests.reading import text

ACTIONS = ("abort", "resume", "restart", "terminate", "complete")
LACKS = {"waiting": {"reason": "CreateContainerConfigError", "message": 'configmap "c" not found'}}
CRASHED = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
FIRED = "*[@id='job-policies']//tbody/tr"


class Life:
    """One job, what is done to it, its record, and somebody who reads its pages.

        job {maxRetry: 3}
        admit, place, run, wait 60, suspend | runs pods | ?run=1 head

    A line has what happens, each a method with its words; a pod goes by its name without the job's. Behind each bar
    stands the query of a page, if it has one, and which parts of it are looked at: `PARTS`, or elements by their ids.
    A job of two pods is made unless a line says which.
    """

    def __init__(self, clock, browser=None, name="demo", **spec):
        bootstrap()
        self.clock, self.browser, self.name = clock, browser, name
        self.jobs, self.recorder, self.job = control.Controller(), runner("history"), None
        settle(self.jobs, self.recorder)
        self.began = self.moment
        if spec:
            self.submit(**spec)

    def submit(self, **spec):
        self.job = self.jobs.submit(control.job(self.name, **spec))

    def tell(self, line):
        steps, *looks = line.split(" | ")
        if steps.startswith("job "):
            spec = yaml.safe_load(steps.removeprefix("job "))
            self.submit(tasks=[task(*each) for each in spec.pop("tasks", {}).items()], **spec)
        else:
            self.does(steps)
        return [text for look in looks for text in self.seen(*look.split())]

    def does(self, *lines):
        if self.job is None:
            self.submit()
        for step in filter(None, (step.strip() for line in lines for step in line.split(","))):
            verb, *named = step.split()
            if verb in ACTIONS:
                self.jobs.issue(Action[f"{verb.upper()}_JOB"], name=self.name)
            else:
                getattr(self, verb)(*named)
        return self

    def seen(self, *parts):
        query, parts = (parts[0], parts[1:]) if parts[0].startswith("?") else ("", parts)
        page = JobPage(self.browser, self.name, query)
        for part in parts:
            found = PARTS[part] if part in PARTS else of(f"*[@id='job-{part}']")
            yield f"{query} {part}: {found(self, page) or '–'}".lstrip()

    @property
    def moment(self):
        return self.clock.microseconds() // 1000

    @property
    def phase(self):
        return store.get(JOBS, "default", self.name).object["status"]["state"]["phase"]

    def now(self):
        return now_text(self.moment)

    def pods(self, *named):
        own = store.find(PODS, owner=self.job.uid)
        return [f"{self.name}-{each}" for each in named] or [each.name for each in own]

    def recorded(self):
        settle(self.recorder)
        return records.by_uid(JOBS, [self.job.uid]).get(self.job.uid)

    def history(self):
        return record.read(self.recorded().history)

    # ---- what happens

    def wait(self, seconds):
        self.clock.move(float(seconds))
        self.jobs.settle()

    def admit(self):
        self.jobs.admit()

    def place(self):
        placed = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": self.now()}]
        binding = {"spec": {"nodeName": "node-1"}, "status": {"conditions": placed}}
        for pod in store.find(PODS):
            if not pod.object["spec"].get("nodeName"):
                store.write(Patch(PODS, pod.namespace, pod.name, binding, "binding"))

    def run(self):
        self.since = self.now()
        for pod in store.find(PODS):
            self.status(pod.name, "Running", state={"running": {"startedAt": self.since}})

    def status(self, pod, phase, *, state, last=None, restarts=0):
        """A node says how a pod's only container does."""
        container = {"name": "main", "restartCount": restarts, "state": state, "lastState": last or {}}
        self.jobs.become(phase, pod, containerStatuses=[container])

    def fail(self, pod, code, began=""):
        state = {"terminated": {"exitCode": int(code), "startedAt": began or self.since, "finishedAt": self.now()}}
        self.status(f"{self.name}-{pod}", "Failed" if int(code) else "Succeeded", state=state)

    def bury(self, code=None):
        """Nodes end the pods that are to go; with a code they say first how their containers ended."""
        for pod in store.find(PODS):
            if pod.object["metadata"].get("deletionTimestamp"):
                if code is not None and pod.object["status"]["phase"] == "Running":
                    self.fail(pod.name.removeprefix(f"{self.name}-"), code, self.now())
                store.write(Delete(PODS, pod.namespace, pod.name, grace=0))
        self.jobs.settle()

    def suspend(self):
        self.does("abort, bury")

    def event(self, reason, *words):
        about = {**store.get(JOBS, "default", self.name).object, "apiVersion": JOBS.api_version, "kind": "Job"}
        store.write(Create(EVENTS, event(about, reason, " ".join(words), self.moment, component="test")))

    def delete(self):
        store.write(Delete(JOBS, "default", self.name))
        for name in self.pods():
            store.write(Delete(PODS, "default", name, grace=0))

    def record(self):
        settle(self.recorder)

    def crash(self, *named, restarts=1):
        """Pods ended and wait to start again."""
        self.last = {"terminated": {"exitCode": 1, "startedAt": self.since, "finishedAt": self.now()}}
        for name in self.pods(*named):
            self.status(name, "Running", state=CRASHED, last=self.last, restarts=restarts)

    def again(self, *named):
        """The containers of pods that had ended run again."""
        for name in self.pods(*named):
            state = {"running": {"startedAt": self.now()}}
            self.status(name, "Running", state=state, last=self.last, restarts=2)

    def lack(self, *then):
        """One pod after the other fails as it lacks something, `then dropped` by somebody."""
        for name in self.pods():
            for phase in ("Pending", "Failed"):
                self.status(name, phase, state=LACKS)
            if then:
                store.write(Delete(PODS, "default", name))

    def restarting(self):
        """A pod has yet to end, and the pod group stays."""
        store.write(Patch(JOBS, "default", self.name, {"status": {"state": {"phase": "Restarting"}}}, "status"))

    def go(self):
        """The job comes to run, if anything lets it."""
        for _ in range(3):
            self.does("wait 1, bury 143, admit, place, wait 0")
        self.since = self.now()
        for pod in store.find(PODS, owner=self.job.uid):
            if pod.object["spec"].get("nodeName") and pod.object["status"].get("phase") == "Pending":
                self.status(pod.name, "Running", state={"running": {"startedAt": self.since}})

    def scale(self, replicas):
        resize(int(replicas))
        self.jobs.settle()

    def unplaced(self, pod):
        """The scheduler says why a pod has no node."""
        condition = {"type": "PodScheduled", "status": "False", "message": "Nothing is free."}
        store.write(Patch(PODS, "default", f"{self.name}-{pod}", {"status": {"conditions": [condition]}}, "status"))
        self.jobs.settle()

    def evict(self, *named):
        """The scheduler evicts pods, `by` an action `for` a group; they end a second later, or `slowly`."""
        named, is_slow = [each for each in named if each != "slowly"], "slowly" in named
        at = min((named.index(each) for each in ("by", "for") if each in named), default=len(named))
        options = {"by": "preempt", "for": world.WINNER, **dict(zip(named[at::2], named[at + 1 :: 2], strict=True))}
        target = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        names = self.pods(*named[:at])
        for name in names:
            conditions = store.get(PODS, "default", name).object["status"].get("conditions") or []
            status = {"status": {"conditions": [*conditions, {**target, "lastTransitionTime": self.now()}]}}
            store.write(Patch(PODS, "default", name, status, "status"), Delete(PODS, "default", name, grace=30))
        group, other = f"{self.name}-{self.job.uid}", options["for"].replace("nobody", "")
        about = ("default", group, "default", len(names), "", other, (("node-1", len(names)),))
        decisions.put([Decision(self.moment, "evict", options["by"], *about)])
        self.jobs.settle()
        if not is_slow:
            self.does("wait 1, bury")

    def winner(self):
        """The job for which pods went gets its node, in the queue prod."""
        namespace, _, name = world.WINNER.partition("/")
        decisions.put([Decision(self.moment, "bind", "MinimumFits", namespace, name, "prod", 1, "", "")])

    def noted(self):
        """The pod group says since when the job was evicted."""
        noted = {"metadata": {"annotations": {FIRST_EVICTED: self.now()}}}
        store.write(Patch(POD_GROUPS, "default", f"{self.name}-{self.job.uid}", noted))

    def reclaim(self, runtime):
        """The scheduler is told how long jobs run before reclaim may evict them."""
        text = f"actions: allocate, reclaim\nconfigurations:\n- {{name: reclaim, arguments: {{minRuntime: {runtime}}}}}"
        conf = {"volcano-scheduler.conf": text}
        store.write(Create(CONFIGMAPS, config_map("volcano-scheduler-configmap", "volcano-system", **conf)))


# ---- what is seen
def seconds(value):
    return "…" if value is None else f"{value / 1000:g}"


def bars(story, page):
    """Of each its pod, when it was made, placed, started and ended, how it ended, its starts and for whom it went."""
    found = []
    for name, _, made, placed, started, ended, state, code, _, starts, *more in page.drawn["bars"]:
        times = "–".join(map(seconds, (made, placed, started, ended)))
        exited = f" exit {code}" if code is not None else ""
        again = "".join(f" [{seconds(begun)}–{seconds(over)}]" for begun, over, *_ in starts)
        own = name.removeprefix(f"{story.name}-")
        found.append(f"{own} {state} {times}{exited}{again} {' '.join(more[1:])}".rstrip())
    return ", ".join(found)


def waits(story, page):
    return ", ".join(f"{why} {seconds(begun)}–{seconds(over)}" for why, begun, over in page.drawn["waits"])


def pods(story, page):
    return ", ".join(f"{name.removeprefix(f'{story.name}-')} {phase}" for name, phase in page.pods.items())


def row(browser, query=""):
    found = JobPage.of_list(browser, query).rows
    return " / ".join(text(cell) for cell in found[0]) if found else ""


def of(path):
    """What the page says at each place of a path."""
    return lambda story, page: " · ".join(map(text, page.tree.findall(f".//{path}")))


PARTS = {
    "bars": bars, "waits": waits, "pods": pods,
    "zero": lambda story, page: seconds(page.drawn["zero"] - story.began),
    "marks": lambda story, page: ", ".join(f"{seconds(at)} {label}" for at, label in page.drawn["marks"]),
    "leads": lambda story, page: " ".join(page.tree.xpath("//*[@id='job-why']//a/@href")),
    "steps": of("*[@id='job-steps']/li"), "runs": of("*[@id='job-runs']//a"), "over": of("*[@id='job-runs']/p"),
    "fired": of(FIRED), "facts": of("*[@class='job-facts']"),
    "legend": of("*[@id='job-timeline']//ul[@class='legend small']/li"),
    "until": lambda story, page: ", ".join(
        each.get("datetime") for each in page.tree.findall(".//*[@id='job-policies']//time[@data-mode='until']")),
    "goes-on": lambda story, page: str(len(page.tree.findall(".//time[@data-mode='since']"))),
    "failures": lambda story, page: " ".join(
        path for path in ("@class='bad'", "@class='job-causes'", "@id='job-steps']/li[@data-state='failed'")
        if page.tree.findall(f".//*[{path}]")),
    "row": lambda story, page: row(story.browser),
    "deleted": lambda story, page: row(story.browser, f"?phase=Deleted&q={story.name}"),
    "state": lambda story, page: "{phase} {reason}: {message}".format_map(control.state(story.name)["state"]),
}  # fmt: skip
