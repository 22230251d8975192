"""Judges the lives of jobs by the log: each step of the controller by what it could know, and what is left at rest."""

from __future__ import annotations

from collections import Counter

from cluster.store import store
from kube.meta import parse_time
from kube.resources import NETWORK_POLICIES
from tests.jobs.lifecycle import reference
from tests.jobs.lifecycle.lives import OF_TASKS, TOLD, Ask, Life

JOBS, PODS, EVENTS = "jobs.batch.volcano.sh", "pods", "events"
GROUPS, COMMANDS = "podgroups.scheduling.volcano.sh", "commands.bus.volcano.sh"
PRODUCTS = ("configmaps", "secrets", "services", NETWORK_POLICIES.id)
MARK = "volcano.sh/controller-out-of-sync"


class Wrong(AssertionError):
    """Something came of a job that must not, or did not that must."""


class Witness:
    """Follows the log change by change.

    `others()` takes what anybody did, `controller()` what one step of the
    controller did; `hears` says when a step begins.
    """

    def __init__(self):
        self.revision = 0
        self.lives = {}  # uid of a job → its life
        self.pods = {}  # name → pod
        self.owned = {}  # kind and name of a group or product → uid of its controller
        self.groups = {}  # uid of a job → phase of its group
        self.group_phases = {}  # uid of a job → revisions and phases of its group, from the one on that the controller knows
        self.known = 0  # up to where the controller has read
        self.head = 0  # up to where it could have
        self.now = 0
        self.by_controller = False

    # ---- following

    def hears(self, now):
        """Know that the controller takes a step now."""
        self.head, self.now = self.revision, now
        for life in self.lives.values():
            for ask in life.asks:
                ask.hear(now)
                if ask.event in OF_TASKS and not self._happened_to_task(life, ask.event, ask.task):
                    ask.certain = False

    def others(self):
        """Take in what was done since by anybody but the controller."""
        self.by_controller = False
        self._follow()

    def controller(self, known):
        """Take in what a step of the controller did, who has read the log up to a revision, and judge it."""
        self.by_controller, self.known = True, known
        self._follow()
        for life in self.lives.values():
            if life.must:
                raise Wrong(f"{life.key} is asked to become {life.must}, and stays {life.phase}")
            life.end_step(known)
        for phases in self.group_phases.values():
            while len(phases) > 1 and phases[1][0] <= known:
                del phases[0]

    def _follow(self):
        for change in store.changes(self.revision):
            self.revision = change.revision
            take = _TAKES.get(change.resource)
            if take is not None:
                take(self, change, change.object, change.verb == "DELETED")

    # ---- jobs

    def _job(self, change, job, is_gone):
        if is_gone:
            self.lives.pop(change.uid, None)
            return
        spec, status = job["spec"], job.get("status", {})
        life = self.lives.get(change.uid)
        if life is None:
            life = self.lives[change.uid] = Life(change.key, change.uid, [(change.revision, spec)])
        if status != life.status:
            self._judge(life, status)
        life.wish(change.revision, spec)
        life.status = status
        life.deleting = "deletionTimestamp" in job["metadata"]
        life.forget()

    def _judge(self, life, status):
        """Judge what the controller says of a job now."""
        before, phase = life.phase, status["state"]["phase"]
        asked, life.must = life.must, ""
        if before in reference.FINISHED:
            lasting = ("state", "conditions", "retryCount")
            if [status.get(each) for each in lasting] != [life.status.get(each) for each in lasting]:
                raise Wrong(f"{life.key} is {before}, and becomes {phase}: {status['state']}")
        if asked and phase != asked:
            raise Wrong(f"{life.key} is asked to become {asked}, and becomes {phase}")
        if phase == before or asked:
            return
        known = [(spec, group) for _, spec in life.specs for _, group in self.group_phases.get(life.uid, [(0, "")])]
        if phase in [reference.by_itself(before, spec, status, group) for spec, group in known]:
            self._judge_end(life, phase)
        elif not life.executing & reference.ASKED.get((before, phase), set()):
            raise Wrong(f"{life.key} goes from {before or 'new'} to {phase} for no reason: {status}")

    def _judge_end(self, life, phase):
        """A policy goes before what would come of what happened by itself (§10, Q-14).

        ResumeJob as an answer is that which comes by itself (§2.6), and may
        end the job before the answers that come after it.
        """
        if life.phase != "Running" or phase not in reference.FINISHED or "ResumeJob" in life.executing:
            return
        for ask in life.left:
            if ask.certain and not ask.delay and ask.revision <= self.known:
                raise Wrong(f"{life.key} becomes {phase}, and {_shown(ask)}")

    # ---- what happens

    def _pod(self, change, pod, is_gone):
        name, before = change.name, self.pods.get(change.name)
        if is_gone:
            self.pods.pop(name, None)
        else:
            self.pods[name] = pod
        life = self.lives.get(_owner(pod))
        if life is None or pod["metadata"].get("annotations", {}).get(MARK) == "true":
            return
        event = _event(before, pod, is_gone)
        if event == "PodRunning":
            life.runs_again(name)
        elif event and life.phase in reference.HEEDING and not life.deleting:
            self._ask(life, change.revision, event, pod)

    def _ask(self, life, revision, event, pod):
        notes = pod["metadata"].get("annotations", {})
        task, version = notes.get("volcano.sh/task-spec", ""), int(notes["volcano.sh/job-version"])
        policy = reference.answer(life.spec, event, task, reference.exit_codes(pod))
        if policy is None or version < life.version:
            return
        certain = event not in OF_TASKS or self._happened_to_task(life, event, task)
        life.ask(
            Ask(
                event, policy["action"], task, pod["metadata"]["name"], _partition(life.spec, pod), version,
                revision, reference.delay_ms(policy), certain,
            )
        )  # fmt: skip

    def _happened_to_task(self, life, event, task):
        pods = [
            pod
            for pod in self._own(life)
            if _note(pod, "task-spec") == task and "deletionTimestamp" not in pod["metadata"]
        ]
        judge = reference.is_completed if event == "TaskCompleted" else reference.is_failed
        return judge(life.spec, task, pods)

    def _own(self, life):
        """Return the pods of a job that nobody has marked to be ended."""
        return [
            pod
            for pod in self.pods.values()
            if _owner(pod) == life.uid and pod["metadata"].get("annotations", {}).get(MARK) != "true"
        ]

    def _group(self, change, group, is_gone):
        self._thing(change, group, is_gone)
        owner, phase = _owner(group), group.get("status", {}).get("phase", "")
        before = self.groups.pop(owner, "")
        self.group_phases.setdefault(owner, [(0, "")]).append((change.revision, "" if is_gone else phase))
        if is_gone:
            return
        self.groups[owner] = phase
        life = self.lives.get(owner)
        if life is None or phase != "Unknown" or before == phase or life.phase not in reference.HEEDING:
            return
        if policy := reference.answer(life.spec, "Unknown"):
            delay = reference.delay_ms(policy)
            life.ask(Ask("Unknown", policy["action"], "", "", None, life.version, change.revision, delay))

    def _thing(self, change, thing, is_gone):
        if is_gone:
            self.owned.pop((change.resource, change.key), None)
        else:
            self.owned[change.resource, change.key] = _owner(thing)

    # ---- what is done about it

    def _command(self, change, command, is_gone):
        if is_gone and self.by_controller and (life := self.lives.get(command["target"].get("uid"))):
            life.execute(command["action"])

    def _event(self, change, event, is_gone):
        life = self.lives.get(event["involvedObject"].get("uid"))
        if is_gone or life is None or event["reason"] != "ExecuteAction":
            return
        told = TOLD.fullmatch(event["message"])
        if told is None:
            raise Wrong(f"{life.key} is told {event['message']!r}")
        if told["event"] == "PodPending":
            self._answer_pending(life, told["what"], told["action"])
        elif wrong := life.answer(told["event"], told["action"], told["what"], self.known, self.now):
            raise Wrong(f"{life.key} {wrong}")

    def _answer_pending(self, life, what, action):
        """Judge the answer to a pod that waits: it was Pending for as long as the policy says, and once is enough."""
        waiting = dict(self._waits_too_long(life))
        name = what.partition(" ")[0]
        if name not in waiting and self.known < self.head:
            life.execute(action)  # what the pod does since has yet to be read
            return
        if name not in waiting or self.pods[name]["metadata"]["uid"] in life.told_pending:
            raise Wrong(f"{life.key} answers that {what!r} with {action}, for no reason or again")
        if waiting[name][0] != action:
            raise Wrong(f"{life.key} answers that {what!r} with {action}, not with {waiting[name][0]}")
        same = [each for each, scope in waiting.items() if scope == waiting[name]]
        life.told_pending |= {self.pods[each]["metadata"]["uid"] for each in same}
        life.execute(action)

    def _waits_too_long(self, life):
        """Yield the names of pods that are Pending for longer than a policy waits, with its action and what that is about."""
        for pod in self._own(life):
            metadata, task = pod["metadata"], _note(pod, "task-spec")
            policy = reference.answer(life.spec, "PodPending", task)
            if policy is None or _phase(pod) != "Pending" or "deletionTimestamp" in metadata:
                continue
            partition = _partition(life.spec, pod)
            is_late = self._age(pod) >= reference.delay_ms(policy)
            if is_late and not reference.changes_nothing(policy["action"], partition):
                about = reference.scope(policy["action"], task, metadata["name"], partition)
                yield metadata["name"], (policy["action"], about)

    def _age(self, pod):
        return self.now - parse_time(pod["metadata"]["creationTimestamp"])

    # ---- at rest

    def rest(self, now):
        """Judge what is left when nothing moves and all that waited for a time before `now` has had it."""
        self.now = now
        for life in self.lives.values():
            if not life.deleting:
                for judge in (self._rests, self._asks_nothing, self._keeps_nothing, self._lacks_nothing):
                    if wrong := judge(life):
                        raise Wrong(f"{life.key} is {life.phase}, and {wrong}")

    def _rests(self, life):
        state = life.status.get("state", {})
        if not state.get("reason") or not state.get("message"):
            return f"does not say why: {state}"
        follows = reference.by_itself(life.phase, life.spec, life.status, self.groups.get(life.uid, ""))
        return "" if follows == life.phase else f"should be {follows}: {life.status}"

    def _asks_nothing(self, life):
        for ask in life.asks:
            if ask.certain and ask.late <= self.now:
                return _shown(ask)
        if life.phase in reference.HEEDING:
            for name, (action, _) in self._waits_too_long(life):
                if self.pods[name]["metadata"]["uid"] not in life.told_pending:
                    return f"{name} is Pending for too long, and was to be answered with {action}"
        return ""

    def _keeps_nothing(self, life):
        """No pod of a run that was ended stays in the next, and nothing that is controlled outlives the end."""
        own = self._own(life)
        if life.phase in reference.HEEDING:
            old = [pod["metadata"]["name"] for pod in own if int(_note(pod, "job-version")) != life.version]
            return f"pods of another run are left: {old}" if old else ""
        alive = [pod["metadata"]["name"] for pod in own if _phase(pod) not in reference.ENDED]
        kept = [name for name, owner in self.owned.items() if owner == life.uid]
        is_over = life.phase in (*reference.FINISHED, "Aborted")
        return f"there are still {alive + kept}" if is_over and (alive or kept) else ""

    def _lacks_nothing(self, life):
        """A job that was let in has each of its pods, but for those of tasks that wait for others."""
        if life.phase not in reference.ALIVE or not reference.is_let_in(self.groups.get(life.uid, "")):
            return ""
        ready = Counter(_note(pod, "task-spec") for pod in self._own(life) if _is_ready(pod))
        name = life.key.partition("/")[2]
        for task in life.spec["tasks"]:
            if reference.is_held_back(life.spec, task["name"], ready):
                continue
            names = [f"{name}-{task['name']}-{index}" for index in range(task.get("replicas", 0))]
            if missing := [each for each in names if each not in self.pods]:
                return f"has no {missing}"
        return ""


_TAKES = {
    JOBS: Witness._job,
    PODS: Witness._pod,
    GROUPS: Witness._group,
    COMMANDS: Witness._command,
    EVENTS: Witness._event,
    **dict.fromkeys(PRODUCTS, Witness._thing),
}


def _event(before, pod, is_gone):
    """Return what happened to a pod (§3.3)."""
    if is_gone:
        return "PodEvicted"
    if before is None or before["metadata"]["uid"] != pod["metadata"]["uid"]:
        return ""
    if _phase(before) == _phase(pod):
        return "TaskFailed" if reference.restarts(pod) > reference.restarts(before) else ""
    return {"Failed": "PodFailed", "Succeeded": "TaskCompleted", "Running": "PodRunning"}.get(_phase(pod), "")


def _shown(ask):
    return f"{ask.event} of {ask.pod or 'its group'} was to be answered with {ask.action}"


def _owner(obj):
    owners = obj["metadata"].get("ownerReferences", ())
    return next((owner["uid"] for owner in owners if owner.get("controller")), "")


def _note(pod, name):
    return pod["metadata"].get("annotations", {}).get(f"volcano.sh/{name}", "")


def _partition(spec, pod):
    size = reference.task_of(spec, _note(pod, "task-spec")).get("partitionPolicy", {}).get("partitionSize", 0)
    return int(_note(pod, "task-index")) // size if size else None


def _phase(pod):
    return pod["status"].get("phase", "Pending")


def _is_ready(pod):
    told = pod["status"].get("containerStatuses") or ()
    is_up = _phase(pod) == "Running" and told and all(each.get("ready") for each in told)
    return "deletionTimestamp" not in pod["metadata"] and (_phase(pod) == "Succeeded" or bool(is_up))
