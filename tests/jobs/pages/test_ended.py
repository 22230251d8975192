"""What has ended says so at whatever time one looks, and what we stopped is not called failed."""

from __future__ import annotations

import itertools

import msgspec
from django.conf import settings
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from cluster import access
from cluster.store import store
from dashboard.live.topics import TopicRequest
from dashboard.parts import phases
from jobs.pages import live, timeline
from jobs.pages.reading import Pod
from jobs.pages.timeline import bar_of, bar_of_span
from kube.kinds.batch import Action
from kube.resources import PODS
from tests.jobs.pages.job_page import JobPage, words
from tests.jobs.pages.world import evict
from tests.tables import cases

STYLES = settings.BASE_DIR / "frontend" / "styles"


def running(life, **spec):
    return life(**spec).admit().place().run()


def ran(page):
    return words(page.tree.find(".//*[@class='job-facts']")).partition("Ran")[2].partition("Restarts")[0].strip()


def listed(reader, query=""):
    """The cells of the first job in the list."""
    (row,) = JobPage.of_list(reader, query).rows
    return [words(cell) for cell in row]


def test_a_job_that_is_deleted_while_it_runs_has_run_until_then(life, reader):
    one = running(life).passes(39).delete()
    one.record()
    for _ in range(2):
        page, row = JobPage(reader), listed(reader, "?phase=Deleted")
        assert page.text("job-head").startswith("Deleted")
        assert "needed" not in page.text("job-head")
        assert (ran(page), row[-7].split(" ")[0], row[-2]) == ("39 s", "Deleted", "39 s")
        assert "0/2" in row[-6]
        one.passes(300)


def test_a_page_that_is_open_ends_with_its_job(life):
    """Its times would go on in the browser for as long as somebody looks."""
    running(life).passes(39).delete()
    head = live.job_head(TopicRequest(access.SYSTEM, {"namespace": "default", "name": "demo"})).parts["job-head"]
    assert all(text in head for text in ('data-phase="Deleted"', "This job was deleted."))
    assert 'data-mode="since"' not in head


@cases("stop", {
    "suspended": lambda one: one.ask(Action.ABORT_JOB).bury(143),
    "terminated": lambda one: one.ask(Action.TERMINATE_JOB).bury(143),
    "completed": lambda one: one.ask(Action.COMPLETE_JOB).bury(143),
    "still ending": lambda one: one.ask(Action.ABORT_JOB),
})  # fmt: skip
def test_pods_that_were_asked_to_end_have_not_failed(life, reader, stop):
    stop(running(life).passes(60))
    page = JobPage(reader)
    assert "Failed" not in page.pods.values()
    assert "failed" not in {bar[6] for bar in page.drawn["bars"]}
    for wrong in ("@class='bad'", "@class='job-causes'", "@id='job-steps']/li[@data-state='failed'"):
        assert not page.tree.findall(f".//*[{wrong}]")


def test_a_pod_that_had_failed_before_it_was_told_to_go_has_failed(life, reader):
    one = running(life, maxRetry=3).passes(5)
    one.end("demo-main-0", 3, began=one.now()).ask(Action.RESTART_JOB).bury(143).admit()
    page = JobPage(reader, query="?run=1")
    assert page.pods == {"demo-main-0": "Failed", "demo-main-1": "Stopped"}
    assert "exit 3 · main-0" in words(page.tree.find(".//*[@class='job-causes']"))


def test_an_earlier_run_is_told_without_the_state_of_the_job_now(life, reader):
    running(life).passes(60).ask(Action.ABORT_JOB).bury(143).passes(600).resume().admit().place().run()
    page = JobPage(reader, query="?run=1")
    head = page.text("job-head")
    assert head.startswith("Aborted 0 of 2 pods succeeded")
    assert "Run 1 of 2 is over. The job is now Running" in head
    assert "exit 143" not in head
    assert ran(page) == "1 min"
    assert page.steps[-1].startswith("Abort")
    assert JobPage(reader).text("job-head").startswith("Running 2 of 2 needed are running")


def test_an_evicted_job_keeps_what_it_ran(life, reader):
    one = running(life, minAvailable=2)
    for _ in range(3):
        evict(one.passes(520), "demo-main-0", "demo-main-1")
        one.jobs.settle()
        page, row = JobPage(reader), listed(reader)
        one.passes(30).admit().place().run()
    assert (ran(page), row[-2]) == ("26 min 3 s, evicted 3 ×", "26 min 3 s")
    assert "26 min 3 s before" in ran(JobPage(reader))


def pod(phase, *containers, conditions=(), taken_on=""):
    """A pod made at 0 s."""
    times = [{"type": "Ready", "status": "False", "lastTransitionTime": at} for at in conditions]
    body = {
        "metadata": {"name": "a", "creationTimestamp": second(0)},
        "spec": {"nodeName": "n"},
        "status": {
            "phase": phase,
            "startTime": taken_on,
            "conditions": times,
            "containerStatuses": [{"name": "c", "state": state} for state in containers],
        },
    }
    return msgspec.convert(body, Pod)


def second(number):
    return f"1970-01-01T00:00:{number:02}Z"


WAITING = {"waiting": {"reason": "CreateContainerConfigError"}}
RUNS = {"running": {"startedAt": second(3)}}
ENDED = {"terminated": {"exitCode": 1, "startedAt": second(3), "finishedAt": second(8)}}


@cases("shown, removed, state, waited, ran", {
    "failed": (pod("Failed", ENDED), None, "failed", 3, 5),
    "failed before a container began": (pod("Failed", WAITING, conditions=[second(9)], taken_on=second(2)), None,
        "failed", 9, None),
    "its node was lost": (pod("Failed", RUNS, conditions=[second(9)], taken_on=second(2)), None, "failed", 3, 6),
    "nothing else is told": (pod("Failed", taken_on=second(2)), None, "failed", 2, None),
    "stopped before a container began": (pod("Pending", WAITING, taken_on=second(2)), 7, "stopped", 7, None),
    "stopped before it had a node": (pod("Pending"), 7, "stopped", 7, None),
    "stopped while it ran": (pod("Running", RUNS), 7, "stopped", 3, 4),
    "removed with a node that does not answer": (pod("Unknown", RUNS), 7, "stopped", 3, 4),
})  # fmt: skip
def test_what_a_pod_waited_and_ran_has_an_end(shown, removed, state, waited, ran):
    bar = bar_of(shown, 0, removed=removed and removed * 1000)
    assert (bar.state, bar.waited, bar.ran) == (state, waited * 1000, ran and ran * 1000)


@cases("play, named", {
    "none but the usual": (lambda one: one, []),
    "stopped": (lambda one: one.ask(Action.COMPLETE_JOB).bury(143), ["stopped"]),
    "evicted": (lambda one: evict(one, "demo-main-0"), ["evicted"]),
})  # fmt: skip
def test_the_legend_names_what_the_bars_are(life, reader, play, named):
    play(running(life).passes(60))
    page = JobPage(reader)
    found = [words(item) for item in page.tree.findall(".//*[@id='job-timeline']//ul[@class='legend small']/li")]
    assert found == [*timeline.USUAL, *named]
    assert {bar[6] for bar in page.drawn["bars"]} <= {*found}


def every_bar():
    """Bars of pods in each phase: placed or not, evicted or not, asked to end or not, gone or not."""
    for phase, *rest in itertools.product(["", *phases.POD_PHASES], *[(False, True)] * 4):
        is_placed, is_evicted, is_stopped, is_gone = rest
        target = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": second(4)}
        status = {"phase": phase, "conditions": [target] if is_evicted else []}
        body = {"metadata": {"name": "a"}, "spec": {"nodeName": "n" * is_placed}, "status": status}
        removed = 9000 if is_gone else None
        yield timeline.bar_of(msgspec.convert(body, Pod), 0, removed=removed, is_stopped=is_stopped)


def test_every_state_of_a_bar_has_a_word_in_the_legend_and_a_colour():
    sheets = [STYLES / name for name in ("tokens.css", "components/timeline.css")]
    tokens, drawn_as = (sheet.read_text() for sheet in sheets)
    found = set()
    for bar in every_bar():
        found.add(bar.state)
        (hue,) = [hue for state, hue in timeline.legend([bar]) if state == bar.state]
        assert f'[data-hue="{hue}"]' in tokens
        assert f".t-{bar.state} {{" in drawn_as
    assert found == {*timeline.HUES}


STEPS = st.sampled_from(
    ["admit", "place", "run", "fail", "succeed", "suspend", "resume", "restart", "stop", "evict", "bury", "wait"]
)


def play(one, step):
    """Do one thing to a job, as far as it is there to be done."""
    names = [each.name for each in store.find(PODS) if phase(each) == "Running"]
    placed = [each.name for each in store.find(PODS) if each.object["spec"].get("nodeName")]
    if step in ("admit", "place"):
        getattr(one, step)()
    elif step == "run":
        for name in placed:
            one.status(name, "Running", state={"running": {"startedAt": one.now()}})
    elif step in ("fail", "succeed"):
        for name in names[:1]:
            one.end(name, int(step == "fail"), began=one.now())
    elif step == "evict":
        if names:
            evict(one, *names[:1], grace=0)
    elif step == "bury":
        one.bury(143)
    elif step != "wait":
        asked = {"suspend": "ABORT_JOB", "resume": "RESUME_JOB", "restart": "RESTART_JOB", "stop": "TERMINATE_JOB"}
        one.ask(Action[asked[step]])
    one.passes(3)


def test_nothing_of_a_deleted_job_depends_on_when_one_looks(life, reader, moved_clock):
    """Also its list, and each of its runs: no time goes on, and no pod that had not failed is called failed."""
    number = itertools.count()

    @examples(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.lists(STEPS, max_size=14))
    def of(steps):
        name = f"job-{next(number)}"
        one = life(name, maxRetry=4)
        failed = set()
        for step in steps:
            play(one, step)
            failed |= {each.uid for each in store.find(PODS) if is_own_failure(each)}
        one.delete().record()
        seen = look(reader, name)
        moved_clock.move(3600)
        one.record()
        assert look(reader, name) == seen
        bars = [bar_of_span(span) for run in one.history().runs for span in run.pods.values()]
        assert {bar.pod.metadata.uid for bar in bars if bar.state == "failed"} <= failed

    of()


def phase(stored):
    return stored.object.get("status", {}).get("phase", "")


def is_own_failure(stored):
    return phase(stored) == "Failed" and not stored.object["metadata"].get("deletionTimestamp")


def look(reader, name):
    """Return all that the pages say of a deleted job; nothing of it goes on."""
    first = JobPage(reader, name)
    pages = [first, *(JobPage(reader, name, f"?run={number}") for number in range(1, len(first.runs) + 1))]
    pages.append(JobPage.of_list(reader, f"?phase=Deleted&q={name}"))
    assert not [each for page in pages for each in page.tree.findall(".//time[@data-mode='since']")]
    return [words(page.tree.find(".//main")) for page in pages]
