"""Pages of ours on a cluster where Volcano's own controllers and scheduler work.

With our definitions of Volcano's kinds, and again with Volcano's own.
"""

import re

import pytest

from kube.resources import COMMANDS, QUEUES
from proof.harness.waiting import until
from proof.kubernetes import world
from proof.kubernetes.volcano import CONTROLLERS, Volcano
from proof.systems.work import COMPLETED, Person, Watcher, job, problems, shell
from tests.kubernetes.objects import refused, release, staying, there, uids

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def config(cluster):
    return world.account(cluster, "volcano-ui-read-only", "volcano-ui-beside")


@pytest.fixture(scope="module")
def beside(cluster, config, tmp_path_factory):
    """A system of pages on a cluster where Volcano works."""
    with Volcano(cluster), world.showing(tmp_path_factory.mktemp("beside"), config) as system:
        world.live(system)
        yield system


@pytest.fixture
def person(beside):
    with Person(beside) as somebody:
        yield somebody


@pytest.fixture
def here(beside):
    with beside.store() as store:
        yield Watcher(store)


def text(page):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.text))


def test_job_from_the_form_is_done_by_volcano(cluster, person, here):
    person.create(job("formed", shell("true", replicas=3)))
    here.reaches("formed", "Completed")
    page = person.get("/jobs/default/formed/")
    assert COMPLETED in page.text
    assert set(here.pods("formed")) == {f"formed-main-{number}" for number in range(3)}
    story = {reason for _, reason, _ in here.story("formed")}
    assert "Scheduled" in story, story


def test_why_a_job_waits_is_told_in_words_of_these_pages(person, here):
    person.create(job("waits", shell("true", cpu="1000")))
    here.reaches("waits", "Pending")
    until(lambda: "cpu" in text(person.get("/jobs/default/waits/")), every_s=0.5, what="why it waits")
    assert person.post("/jobs/default/waits/delete/").status_code == 302


def test_job_is_suspended_resumed_and_restarted_by_commands(cluster, person, here):
    person.create(staying("commanded"))
    here.reaches("commanded", "Running")
    first = uids(cluster, "commanded")
    for action, wanted in (("suspend", "Aborted"), ("resume", "Running"), ("restart", "Running")):
        before = uids(cluster, "commanded")
        answer = person.post(f"/jobs/default/commanded/{action}/")
        assert answer.status_code == 302, problems(answer)
        if action == "restart":
            until(
                lambda before=before: (
                    len(found := uids(cluster, "commanded")) == len(before) and not found.items() & before.items()
                ),
                what="other pods",
            )
        here.reaches("commanded", wanted)
    assert uids(cluster, "commanded") != first
    assert not cluster.get(COMMANDS.id)["items"], "Volcano has taken them"
    release(cluster, "commanded")
    here.reaches("commanded", "Completed")


def test_queue_is_closed_and_opened_by_commands(cluster, person):
    state = lambda: (there(cluster, QUEUES, "mine").get("status") or {}).get("state")  # noqa: E731
    assert person.post("/queues/-/new/", name="mine", weight="2").status_code == 302
    until(lambda: state() == "Open", every_s=0.2, what="an open queue")
    for action, wanted in (("close", "Closed"), ("open", "Open")):
        until(lambda: action in person.get("/queues/mine/").text, every_s=0.2, what="the button")  # noqa: B023
        answer = person.post(f"/queues/mine/{action}/")
        assert answer.status_code == 302, problems(answer)
        until(lambda wanted=wanted: state() == wanted, every_s=0.2, what=f"that it is {wanted}")


def test_what_volcanos_controllers_own_is_not_written_from_here(cluster, person, here):
    """Beside Volcano people's own writes are all that the pages' account ever asks for; and it is refused nothing."""
    person.create(job("audited", shell("true")))
    here.reaches("audited", "Completed")
    requests = cluster.requests_by(world.USER)
    written = {
        (each["verb"], each["objectRef"]["resource"], each["objectRef"].get("subresource", ""))
        for each in requests
        if each["verb"] not in ("get", "list", "watch")
    }
    assert {each[1] for each in written} <= {"jobs", "commands", "queues"}, written
    assert not {each[2] for each in written} - {""}, written
    assert refused(requests) == []
    assert cluster.requests_by(CONTROLLERS), "they work as their own account"
