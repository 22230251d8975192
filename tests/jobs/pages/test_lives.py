"""What the pages of a job say as it lives: how to read tests/golden/pages/lives.txt, says tests/jobs/life.py."""

import itertools
import re

import msgspec
import pytest
import yaml
from django.conf import settings
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from cluster import access
from cluster.store import Create, Patch, store
from dashboard.live.topics import TopicRequest
from dashboard.parts import phases
from jobs.lifecycle import progress
from jobs.lifecycle.policy_firings import PolicyFiring
from jobs.lifecycle.progress import Progress
from jobs.lifecycle.reading import Pod
from jobs.pages import live
from jobs.pages.job import chapters, evictions, fired_policies, plugin_sentences, policy_sentences, timeline
from jobs.pages.job.chapters import Chapter, Times
from jobs.pages.job.timeline import Mark, bar_of, bar_of_span
from jobs.plugins.table import PLUGINS
from jobs.templatetags.gang import gang_bar
from kube.kinds.batch import Action, JobEvent, JobPhase
from kube.resources import JOBS, PODS, QUEUES
from scheduler.decided import ZONE_CLOSED
from scheduler.policy.actions import Action as SchedulerAction
from tests.blocks import blocks
from tests.builders import queue
from tests.campaign import scaled
from tests.jobs.builders import defaulted, job
from tests.jobs.control import state, task
from tests.jobs.pages.job_page import JobPage, words
from tests.jobs.pages.world import WINNER
from tests.tables import cases

STYLES = settings.BASE_DIR / "frontend" / "styles"
STEPS = "admit, place, run"
random = examples(max_examples=scaled(15, 200), suppress_health_check=[HealthCheck.function_scoped_fixture])
POLICIES = [{"exitCode": 1, "action": "RestartJob"}, {"exitCode": 2, "action": "RestartPod"}]
RESTARTS = {"fail main-0 1": "whole", "restart": "whole", "fail main-0 2": "part", "suspend resume": "resumed"}
SPANS = st.tuples(st.integers(0, 20), st.none() | st.integers(1, 10)).map(lambda each: (each[0], each[1] and sum(each)))
TRAIN = (task("master", 1), task("worker", 4))
APART = (task("worker", 3, pod={"hostname": "w", "subdomain": "d"}),)
IDLE = {"Pending", "Restarting", "Aborted", "Failed", "Completed", "Terminated"}
HISTORIES = st.lists(st.sampled_from([str(phase) for phase in JobPhase]), max_size=12)


@blocks("lives", folder="pages")
def test_what_the_pages_say(block, golden, life):
    golden(block, life().tell, by_line=True)


def test_pages_of_an_earlier_run_and_of_a_deleted_job_lead_to_what_is_kept(life, client):
    one = life(policies=[{"event": "PodFailed", "action": "RestartJob"}], maxRetry=3)
    one.does(STEPS, "wait 5", "fail main-1 3", "bury", STEPS)
    uid = one.job.uid
    pod = store.get(PODS, "default", "demo-main-0").uid
    first = JobPage(client, query="?run=1")
    link = first.rows[0].find("th/a").get("href")
    assert ("run=1" in link, pod in link) == (True, False)
    (log,) = {*first.tree.xpath("//*[@id='job-policies']//tbody//a[contains(text(), 'main-1')]/@href")}
    assert ("run=1" in log, client.get(log).status_code) == (True, 200)
    one.fail("main-0", 3)
    one.does("event Note it <b>broke</b>", "delete")
    assert "it &lt;b&gt;broke&lt;/b&gt;" in JobPage(client, query="?tab=events").html
    assert "replicas: 2" in JobPage(client, query="?tab=yaml").html
    assert "data-live=" not in JobPage(client).html
    failed = JobPage(client, query=f"?of={uid}&run=2&phase=Failed")
    assert failed.names == ["demo-main-0"]
    assert failed.tree.find(".//input[@name='of']").get("value") == uid
    link = failed.rows[0].find("th/a").get("href")
    assert f"of={uid}" in link
    assert "has been removed" in client.get(link).content.decode()


def test_deleted_jobs_are_listed_behind_a_chip_with_filters_of_their_own(life, client):
    life("there", replicas=1)
    store.write(Create(QUEUES, queue("research")))
    gone = life("gone", queue="research")
    store.write(Patch(JOBS, "default", "gone", {"metadata": {"annotations": {"ui.volcano.sh/created-by": "bob"}}}))
    gone.does("delete", "record")
    living, deleted = (JobPage.of_list(client, query) for query in ("", "?phase=Deleted"))
    assert (living.names, deleted.names) == (["there"], ["gone"])
    assert all(text in living.text("table-chips") for text in ("All 1", "Deleted 1"))
    assert (living.offered("queue"), deleted.offered("queue")) == (["default"], ["research"])
    assert (living.offered("owner"), deleted.offered("owner")) == (["alice"], ["alice", "bob"])
    assert deleted.offered("namespace") == ["default"]


def test_filters_of_an_earlier_runs_pods_offer_the_tasks_that_it_had(life, client):
    one = life(tasks=[task("early", 1), task("late", 0)]).does(STEPS, "suspend")
    early, late = store.get(JOBS, "default", "demo").object["spec"]["tasks"]
    changed = [{**early, "replicas": 0}, {**late, "replicas": 1}]
    store.write(Patch(JOBS, "default", "demo", {"spec": {"tasks": changed}}))
    one.does("resume", STEPS)
    assert JobPage(client, query="?run=1").offered("task") == ["early"]
    assert JobPage(client).offered("task") == ["early", "late"]


def test_a_deleted_job_is_found_beside_a_living_one_of_its_name_by_who_could_see_it(life, client, person):
    one = life().does(STEPS, "delete", "record")
    uid = one.job.uid
    life(replicas=1)
    href = JobPage.of_list(client, "?phase=Deleted").rows[0].find("th/a").get("href")
    assert b"This job was deleted" in client.get(href).content
    assert "This job was deleted" not in JobPage(client).html
    assert b"replicas: 2" in client.get(f"/jobs/new/?from=default/demo&of={uid}").content
    assert b"replicas: 1" in client.get("/jobs/new/?from=default/demo").content
    client.force_login(person("bob", namespace="other"))
    for address, status in (("default/demo/?", 403), ("new/?from=default/demo&", 403), ("other/demo/?", 404)):
        assert client.get(f"/jobs/{address}of={uid}").status_code == status
    assert JobPage.of_list(client, "?phase=Deleted").names == []


def test_a_page_that_is_open_ends_with_its_job(life):
    """Its times would go on in the browser for as long as somebody looks."""
    life().does(STEPS, "wait 39", "delete")
    head = live.job_head(TopicRequest(access.SYSTEM, {"namespace": "default", "name": "demo"})).parts["job-head"]
    assert all(text in head for text in ('data-phase="Deleted"', "This job was deleted."))
    assert 'data-mode="since"' not in head


@pytest.mark.campaign
def test_what_is_said_of_restarts_agrees_everywhere(life, client):
    number = itertools.count()

    @random
    @given(st.lists(st.sampled_from(sorted(RESTARTS)), max_size=5), st.integers(1, 4))
    def check(ways, most):
        one = life(f"job-{next(number)}", replicas=2, minAvailable=1, maxRetry=most, policies=POLICIES).does("go")
        made = {"whole": 0, "part": 0, "resumed": 0}
        requested = 0
        for way in ways:
            if one.phase != "Running":
                break
            one.does(*(way.split() if way == "suspend resume" else [way]), "go")
            requested += RESTARTS[way] != "resumed"
            made[RESTARTS[way]] += RESTARTS[way] == "resumed" or requested < most
        restarts, page, status = made["whole"] + made["part"], JobPage(client, one.name), state(one.name)
        assert status.get("retryCount", 0) == requested
        began = made["whole"] + made["resumed"]
        assert len(page.runs) in (1 + began, None if began else 0)
        assert f"{restarts} of {most - 1} restart" in page.text("job-policies")
        facts = words(page.tree.find(".//*[@class='job-facts']"))
        if requested:
            assert re.search(rf"Restarts\s*{restarts} of {most - 1}", facts)
            assert (f", {made['part']} of parts" in facts) == bool(made["part"])
        assert (status["state"]["phase"] == "Failed") == (requested >= most)
        if requested >= most:
            times = "once" if restarts == 1 else f"{restarts} times"
            assert f"The job was restarted {times}; instead of restart {requested} it" in status["state"]["message"]

    check()


def second(number):
    return f"1970-01-01T00:00:{number:02}Z"


def pod(phase, *containers, conditions=(), taken_on=""):
    """A pod made at 0 s."""
    status = {
        "phase": phase, "startTime": taken_on,
        "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": at} for at in conditions],
        "containerStatuses": [{"name": "c", "state": state} for state in containers],
    }  # fmt: skip
    metadata = {"name": "a", "creationTimestamp": second(0)}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": "n"}, "status": status}, Pod)


WAITING = {"waiting": {"reason": "CreateContainerConfigError"}}
RUNS = {"running": {"startedAt": second(3)}}
ENDED = {"terminated": {"exitCode": 1, "startedAt": second(3), "finishedAt": second(8)}}
NINTH = {"conditions": [second(9)], "taken_on": second(2)}


@cases("observed, removed, state, waited, ran", {
    "failed": (pod("Failed", ENDED), None, "failed", 3, 5),
    "failed before a container began": (pod("Failed", WAITING, **NINTH), None, "failed", 9, None),
    "its node was lost": (pod("Failed", RUNS, **NINTH), None, "failed", 3, 6),
    "nothing else is told": (pod("Failed", taken_on=second(2)), None, "failed", 2, None),
    "stopped before a container began": (pod("Pending", WAITING, taken_on=second(2)), 7, "stopped", 7, None),
    "stopped before it had a node": (pod("Pending"), 7, "stopped", 7, None),
    "stopped while it ran": (pod("Running", RUNS), 7, "stopped", 3, 4),
    "removed with a node that does not answer": (pod("Unknown", RUNS), 7, "stopped", 3, 4),
})  # fmt: skip
def test_what_a_pod_waited_and_ran_has_an_end(observed, removed, state, waited, ran):
    bar = bar_of(observed, 0, removed=removed and removed * 1000)
    assert (bar.state, bar.waited, bar.ran) == (state, waited * 1000, ran and ran * 1000)


def every_bar():
    """Bars of pods in each phase: placed or not, evicted or not, asked to end or not, gone or not."""
    for phase, *rest in itertools.product(["", *phases.POD_PHASES], *[(False, True)] * 4):
        is_placed, is_evicted, is_stopped, is_gone = rest
        target = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": second(4)}
        status = {"phase": phase, "conditions": [target] if is_evicted else []}
        body = {"metadata": {"name": "a"}, "spec": {"nodeName": "n" * is_placed}, "status": status}
        yield bar_of(msgspec.convert(body, Pod), 0, removed=9000 if is_gone else None, is_stopped=is_stopped)


def test_every_state_of_a_bar_has_a_word_in_the_legend_and_a_colour():
    tokens, drawn_as = ((STYLES / name).read_text() for name in ("tokens.css", "components/timeline.css"))
    found = set()
    for bar in every_bar():
        found.add(bar.state)
        (hue,) = [hue for state, hue in timeline.legend([bar]) if state == bar.state]
        assert f'[data-hue="{hue}"]' in tokens
        assert f".t-{bar.state} {{" in drawn_as
    assert found == {*timeline.HUES}


HAPPENS = (
    "admit", "place", "run", "fail", "succeed", "abort", "resume", "restart", "terminate", "evict",
    "bury 143", "wait 3",
)  # fmt: skip


def play(one, step):
    names = [each.name.removeprefix(f"{one.name}-") for each in store.find(PODS) if phase(each) == "Running"][:1]
    if step in ("fail", "succeed", "evict"):
        how = {"fail": "fail {} 1", "succeed": "fail {} 0", "evict": "evict {} slowly"}[step]
        one.does(*(how.format(name) for name in names))
    elif step != "run":
        one.does(step)
    else:
        placed = [each.name for each in store.find(PODS) if each.object["spec"].get("nodeName")]
        one.since = one.now()
        for name in placed:
            one.status(name, "Running", state={"running": {"startedAt": one.since}})
    one.clock.move(3)


def phase(stored):
    return stored.object.get("status", {}).get("phase", "")


@pytest.mark.campaign
def test_nothing_of_a_deleted_job_depends_on_when_one_looks(life, client):
    """Also its list, and each of its runs: no time goes on, and no pod that had not failed is called failed."""
    number = itertools.count()

    @random
    @given(st.lists(st.sampled_from(HAPPENS), max_size=14))
    def check(steps):
        one, failed = life(f"job-{next(number)}", maxRetry=4), set()
        for step in steps:
            play(one, step)
            ended = [each for each in store.find(PODS) if phase(each) == "Failed"]
            failed |= {each.uid for each in ended if "deletionTimestamp" not in each.object["metadata"]}
        one.does("delete", "record")
        seen = look(client, one.name)
        one.clock.move(3600)
        one.does("record")
        assert look(client, one.name) == seen
        bars = [bar_of_span(span) for run in one.history().runs for span in run.pods.values()]
        assert {bar.pod.metadata.uid for bar in bars if bar.state == "failed"} <= failed

    check()


def look(browser, name):
    first = JobPage(browser, name)
    pages = [first, *(JobPage(browser, name, f"?run={number}") for number in range(1, len(first.runs) + 1))]
    pages.append(JobPage.of_list(browser, f"?phase=Deleted&q={name}"))
    assert not [each for page in pages for each in page.tree.findall(".//time[@data-mode='since']")]
    return [words(page.tree.find(".//main")) for page in pages]


def test_every_way_to_be_evicted_has_words():
    """Also those of pods that go for nobody."""
    for reason in (*SchedulerAction, ZONE_CLOSED):
        other = "" if reason in (SchedulerAction.SHUFFLE, ZONE_CLOSED) else WINNER
        sentence = evictions.Eviction(0, 2, str(reason), other, frozenset()).sentence
        assert "  " not in sentence
        assert "pod group " not in sentence


@given(st.lists(SPANS, max_size=6), st.integers(1, 4))
def test_a_gang_is_held_exactly_while_enough_are_there(found, needed):
    held = chapters.stretches_with(found, needed)
    for moment in range(40):
        enough, is_held = (sum(begun <= moment < (ended or 99) for begun, ended in each) for each in (found, held))
        assert bool(is_held) == (enough >= needed)


def test_without_an_eviction_a_gang_waits_as_one_that_is_placed_once():
    times = Times(begun=0, let_in=5, placed=9, running=12)
    assert chapters.waits_of_gang(times, [(9, None)], [(12, None)]) == chapters.waits(times)


def of_policy(text):
    policy = yaml.safe_load(text)
    tasks = [task(policy.pop("task"), policies=[policy], maxRetry=5)] if "task" in policy else []
    stored = defaulted(job(*tasks, policies=[] if tasks else [policy]))
    return [" ".join((f"{each.when}: {each.then}.", *each.doubts)) for each in policy_sentences.of_job(stored)]


def of_restarts(text):
    action, used = text.split()
    stored = defaulted(job(policies=[{"event": "PodFailed", "action": action}]))
    return [policy_sentences.restarts({**stored, "status": {"retryCount": int(used)}})]


def of_plugin(text):
    name, *arguments = text.partition(" of ")[0].split()
    tasks = APART if " of " in text else TRAIN
    found = plugin_sentences.of_job(defaulted(job(*tasks, name="train", plugins={name: arguments})))
    return next(each.gave for each in found if each.name == name)


def of_gang(text):
    *numbers, over = text.split() if text.endswith("over") else (*text.split(), "")
    progress = Progress(*map(int, numbers), bool(over))
    return [f"{progress.short}: {progress.sentence}"]


def of_phases(text):
    times = [(phase, int(at)) for phase, at in (each.split() for each in text.split(", "))]
    deleted = dict(times).get("deleted", 0)
    ran = progress.last_ran([each for each in times if each[0] != "deleted"], deleted)
    return [f"before {ran.before}, since {ran.since}"]


SENTENCES = {
    "policies": of_policy, "restarts": of_restarts, "plugins of a master and four workers": of_plugin,
    "how far a gang is: how many there are, are needed, run, succeeded and failed": of_gang,
    "how long the newest run ran": of_phases,
}  # fmt: skip


@blocks("sentences", folder="pages")
def test_what_is_said(block, golden):
    golden(block, SENTENCES[block.title], by_line=True)


def test_every_plugin_has_something_to_say():
    assert set(plugin_sentences.SAYS) == set(PLUGINS)


def test_the_bar_says_its_numbers():
    assert "1 succeeded, 2 running, 1 failed, 1 waiting" in gang_bar(Progress(5, 4, 2, 1, 1))


@given(HISTORIES, st.integers(1, 5))
def test_only_a_job_that_runs_or_ends_its_pods_runs_and_nothing_grows_once_it_is_deleted(phases, later):
    """However a history went, its end does not depend on when one looks."""
    history = [(phase, at) for at, phase in enumerate(phases)]
    living, deleted = progress.last_ran(history), progress.last_ran(history, len(phases) + later)
    if living.since is not None:
        assert not {*phases[living.since :]} & IDLE
    assert deleted.since is None
    assert (deleted.before is None) or deleted.before <= len(phases) + later


def failed(at, index, *, code=3, action="RestartJob", times=1, **more):
    pod = f"demo-main-{index}"
    firing = PolicyFiring(event=JobEvent.POD_FAILED, what="", action=Action(action), pod=pod, exit_code=code, **more)
    return Mark(at, "ExecuteAction", firing.sentence, times, firing)


def run(number, begun, ended=None, phase=""):
    return Chapter(number, Times(begun, ended=ended), phase=phase)


TWO = [run(1, 0, 100, "Restarting"), run(2, 110)]


def test_equal_answers_of_a_run_are_one_row():
    marks = [failed(90, 0, times=2), failed(95, 1), failed(96, 2, code=4), failed(150, 0)]
    found = fired_policies.rows(marks, TWO)
    assert [(row.run, row.times, row.exit_code, row.pods, row.at) for row in found] == [
        (1, 3, 3, ("demo-main-0", "demo-main-1"), 95), (1, 1, 4, ("demo-main-2",), 96),
        (2, 1, 3, ("demo-main-0",), 150),
    ]  # fmt: skip
    (row,) = fired_policies.rows([failed(90 + index % 9, index) for index in range(12)], TWO)
    assert (row.times, len(row.named), row.more) == (12, 3, 9), "of many pods some are named"
    assert fired_policies.rows([Mark(5, "CommandIssued", "Suspended by alice.")], TWO) == [], "no policy did that"


@cases("action, delay_ms, runs, outcome", {
    "restart": ("RestartJob", 0, TWO, "run 2 began"),
    "restart under way": ("RestartJob", 0, [run(1, 0)], ""),
    "no restart left": ("RestartJob", 0, [run(1, 0, 100, "Failed")], "the job failed"),
    "abort": ("AbortJob", 0, [run(1, 0, 100, "Aborted"), run(2, 200)], "the job was suspended"),
    "another end than was asked for": ("AbortJob", 0, [run(1, 0, 100, "Completed")], ""),
    "complete": ("CompleteJob", 0, [run(1, 0, None, "Completing")], "the job was completed"),
    "a task": ("RestartTask", 0, [run(1, 0)], "the task's pods were restarted"),
    "a pod, later or never": ("RestartPod", 60_000, [run(1, 0)], ""),
})  # fmt: skip
def test_a_row_says_what_it_led_to(action, delay_ms, runs, outcome):
    (row,) = fired_policies.rows([failed(90, 0, action=action, delay_ms=delay_ms)], runs)
    assert row.led_to == outcome
