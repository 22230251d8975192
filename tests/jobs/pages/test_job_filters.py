from __future__ import annotations

import pytest
from django.utils.http import urlencode

from cluster.store import Delete, Patch, store
from jobs.lifecycle import phases
from jobs.models import Operation
from jobs.pages import job_filters
from jobs.rules import reasons
from kube.pod_health import Cause
from kube.resources import JOBS
from scheduler.engine.cause import Reason
from tests.jobs.history.lives import Recorder
from tests.jobs.pages import world
from tests.jobs.pages.test_list import rows
from tests.tables import cases

HOUR = job_filters.HOUR_MS


def test_every_reason_of_a_job_is_a_cause_or_usual():
    steps = [step for row in phases.STEPS.values() for step in row.values()]
    given = {rule.reason for step in steps for rule in step.rules} - {""}
    given |= set(Reason) | set(Cause)
    assert given <= reasons.WORDS.keys() | reasons.USUAL
    assert not reasons.WORDS.keys() & reasons.USUAL
    assert reasons.WORDS.keys() | reasons.USUAL <= given | {"Aborted", "Terminated"}


@cases("problem, text, said", {
    "selector": (job_filters.label_problem, "team in (a,b),!gpu", ""),
    "comparison": (job_filters.label_problem, "team>1", "< and > cannot be used here"),
    "empty value": (job_filters.label_problem, "team=", ""),
    "no selector": (job_filters.label_problem, "team in a", "Write team=vision, team, !team"),
    "exit code": (job_filters.exit_code_problem, "137", ""),
    "no failure": (job_filters.exit_code_problem, "0", "is no exit code of a failure"),
    "too large": (job_filters.exit_code_problem, "256", "from 1 to 255"),
    "no digit of ours": (job_filters.exit_code_problem, "²", "from 1 to 255"),
    "moment": (job_filters.moment_problem, "2026-11-20T08:30", ""),
    "word": (job_filters.moment_problem, "yesterday", "write one as 2026-11-20T08:30, in UTC"),
})  # fmt: skip
def test_what_is_wrong_with_a_value(problem, text, said):
    wrong = problem(text)
    assert said in wrong
    assert bool(wrong) == bool(said)


@cases("values, since", {
    "any time": ({}, None),
    "lately": ({"created": "24h"}, 100 * HOUR - 24 * HOUR),
    "from": ({"from": "1970-01-02T00:00"}, 24 * HOUR),
    "the later of two": ({"created": "24h", "from": "1970-01-02T00:00"}, 76 * HOUR),
})  # fmt: skip
def test_times_are_counted_from_now_or_given(values, since):
    assert job_filters.searched(values, 100 * HOUR)["since"] == since


@pytest.fixture
def zoo(cluster):
    def failed(name, labels, *codes, reason="TooFewSucceeded", now=world.START):
        world.make(name, "Failed", labels=labels, now=now)
        status = {"exitCodes": list(codes), "state": {"phase": "Failed", "reason": reason}}
        store.write(Patch(JOBS, "default", name, {"status": status}, "status"))

    failed("cat", {"team": "vision"}, 1)
    failed("dog", {"team": "ads"}, 1, 137, reason="RetriesUsedUp")
    world.make("eel", "Running", now=world.START + HOUR)


QUERIES = [
    pytest.param({"label": "team in (vision, ads)"}, "cat dog", id="label"),
    pytest.param({"label": "!team"}, "eel", id="label that is not there"),
    pytest.param({"exit": "137"}, "dog", id="exit code"),
    pytest.param({"cause": "TooFewSucceeded"}, "cat", id="cause"),
    pytest.param({"from": "2026-05-28T20:30"}, "eel", id="from"),
    pytest.param({"to": "2026-05-28T20:30", "exit": "1"}, "cat dog", id="before, and exit code"),
    pytest.param({"created": "1h"}, "", id="lately"),
]


@pytest.mark.usefixtures("zoo", "alice")
@pytest.mark.parametrize(("query", "names"), QUERIES)
def test_jobs_are_listed_and_counted_by_what_is_asked(client, parse, query, names):
    page = parse(client.get(f"/jobs/?{urlencode(query | {'sort': 'name'})}"))
    assert " ".join(rows(page)) == names
    assert page.find(".//*[@id='table-chips']/a/b").text == str(len(names.split()))


@pytest.mark.usefixtures("zoo", "alice")
@pytest.mark.parametrize(("query", "names"), QUERIES)
def test_deleted_jobs_are_found_by_the_same_filters(client, parse, query, names):
    recorder = Recorder()
    recorder.settle()
    for name in ("cat", "dog", "eel"):
        store.write(Delete(JOBS, "default", name, grace=0))
    recorder.settle()
    page = parse(client.get(f"/jobs/?{urlencode(query | {'sort': 'name', 'phase': 'Deleted'})}"))
    assert " ".join(rows(page)) == names


@pytest.mark.usefixtures("zoo", "alice")
@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("label=team%3E1", "The filter label was left out"),
        ("exit=x", "The filter exit code was left out"),
        ("cause=Nonsense", "There is no cause “Nonsense”"),
        ("created=2y", "There is no created “2y”"),
        ("from=x", "The filter created from, utc was left out"),
    ],
)
def test_a_value_that_is_none_is_left_out_with_a_note(client, parse, query, note):
    page = parse(client.get(f"/jobs/?{query}"))
    assert note in "".join(page.find(".//ul[@class='table-notes']").itertext())
    assert len(rows(page)) == 3


@pytest.mark.usefixtures("zoo", "alice")
def test_filters_that_are_folded_away_say_how_many_of_them_are_set(client, parse):
    said = "filters-more"
    page = parse(client.get("/jobs/?exit=1&label=team&queue=default"))
    summary = page.find(f".//details[@id='{said}']/summary/b")
    assert summary.text == "2 set"
    assert parse(client.get("/jobs/")).find(f".//details[@id='{said}']/summary/b").get("hidden") is not None


@pytest.mark.usefixtures("zoo")
@pytest.mark.parametrize(("query", "names"), [*QUERIES[:5]])
def test_all_that_match_is_what_the_list_shows(client, cluster, person, query, names):
    client.force_login(person("boss", "operator", "*"))
    response = client.post("/jobs/-/operations/", {"which": "all", "action": "delete", **query})
    number = int(response["Location"].rstrip("/").rpartition("/")[2])
    items = Operation.objects.get(pk=number).items.order_by("name")
    assert " ".join(item.name for item in items) == names
