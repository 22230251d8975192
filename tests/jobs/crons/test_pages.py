"""The pages of cron jobs: what they show, to whom, and what their buttons do."""

from __future__ import annotations

from cluster import clock
from cluster.access import SYSTEM
from cluster.store import Create, Delete, store
from dashboard.live import topics
from kube import meta
from kube.resources import CREATOR_ANNOTATION, CRON_JOBS, JOBS
from tests.dashboard.pages.conftest import page, reader
from tests.jobs.crons.control import cron, status
from tests.jobs.made import PLACE, end, runner, settle, spec

LIST, DETAIL = "/cronjobs/", "/cronjobs/default/c/"
TOPIC = "cronjobs:detail?name=c&namespace=default"


def make(name="c", schedule="0 * * * *", **fields):
    obj = cron(schedule, name, **fields)
    obj["metadata"] |= {"annotations": {CREATOR_ANNOTATION: "sam"}}
    return store.write(Create(CRON_JOBS, obj))[0]


def names():
    return [job.name for job in store.find(JOBS)]


def rendered(topic):
    name, params = topics.parse(topic)
    with store.reading():
        return topics.find(name)(topics.TopicRequest(SYSTEM, params))


def test_list_and_topics_show_schedule_state_and_next_run_and_when_empty_what_to_do_next(sam):
    assert "Write one and give it to kubectl apply" in page(sam, LIST).text(id="table-empty")
    stored, suspended = make(timeZone="Europe/Berlin"), make("d", suspend=True)
    row = page(sam, LIST).text(id=f"cron-{stored.uid}")
    assert all(word in row for word in ("Scheduled", "0 * * * *", "Europe/Berlin", "sam"))
    following = clock.milliseconds() // 3_600_000 * 3_600_000 + 3_600_000
    assert meta.timestamp(following)[:16].replace("T", " ") in row
    assert page(sam, f"{LIST}?phase=Suspended").rows() == [f"cron-{suspended.uid}"]
    # From the next run on the topics are other ones.
    assert rendered("cronjobs:list").again == following
    assert rendered(TOPIC).again <= following
    assert {watch.resource for watch in rendered(TOPIC).watches} == {CRON_JOBS.id, JOBS.id}
    assert rendered("cronjobs:jobs?name=c&namespace=default").parts
    store.write(Delete(CRON_JOBS, PLACE, "c"))
    assert rendered("cronjobs:list").again is None


def test_the_page_shows_facts_calendar_and_jobs(sam):
    make(concurrencyPolicy="Forbid", startingDeadlineSeconds=60)
    assert "It has made no job yet" in page(sam, DETAIL).text(id="table-empty")
    sam.post(f"{DETAIL}run/")
    (name,) = names()
    end(name, "Failed")
    shown = page(sam, DETAIL)
    assert all(words in shown.text(id="cron-head") for words in ("the next one waits (Forbid)", "60 s"))
    (run,) = shown.all(tag="a", **{"class": "calendar-run"})
    assert (run.get("data-phase"), run.get("href")) == ("Failed", f"/jobs/default/{name}/")
    assert name in shown.text(id="table-rows")


def test_what_is_suspended_is_resumed(sam):
    make()
    for action, is_suspended in (("suspend", True), ("resume", False)):
        assert f"{DETAIL}{action}/" in page(sam, DETAIL).actions()
        sam.post(f"{DETAIL}{action}/")
        assert store.get(CRON_JOBS, PLACE, "c").object["spec"]["suspend"] is is_suspended
        assert ("No jobs are made until it is resumed" in page(sam, DETAIL).text(id="cron-head")) is is_suspended


def test_a_job_that_is_run_now_is_the_cron_jobs_own_and_one_that_is_refused_is_told(sam):
    stored = make(name="c" * 47)
    answer = sam.post(f"/cronjobs/default/{stored.name}/run/")
    (name,) = names()
    assert (answer["Location"], name.startswith(f"{stored.name}-")) == (f"/jobs/default/{name}/", True)
    metadata = store.get(JOBS, PLACE, name).object["metadata"]
    assert metadata["ownerReferences"][0]["uid"] == stored.uid
    assert metadata["annotations"] == {"cronjob.kubernetes.io/instantiate": "manual", CREATOR_ANNOTATION: "sam"}
    settle(runner("cronjobs"))
    assert [each["name"] for each in status(stored.name)["active"]] == [name]
    make(jobTemplate={"spec": spec(queue="nowhere")})
    sam.post(f"{DETAIL}run/")
    assert "queue nowhere not found" in page(sam, DETAIL).text(id="toasts")
    assert names() == [name]


def test_who_did_not_make_it_sees_no_button(sam):
    make()
    other = reader("tom", "submitter", PLACE)
    assert not [action for action in page(other, DETAIL).actions() if action.startswith(DETAIL)]
    assert sam.post(f"{DETAIL}delete/")["Location"] == LIST
    assert "was deleted" in rendered(TOPIC).parts["cron-head"]
