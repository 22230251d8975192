"""The pages of flows and templates: what they show, to whom, and what their buttons do."""

from __future__ import annotations

import pytest

from cluster.store import Create, store
from kube.resources import CREATOR_ANNOTATION, JOB_FLOWS, JOB_TEMPLATES, JOBS
from tests.dashboard.pages.conftest import page, reader
from tests.jobs.builders import task
from tests.jobs.flows.control import flow, step, template
from tests.jobs.made import PLACE, end, runner, settle

LIST, DETAIL = "/flows/", "/flows/default/f/"
TEMPLATES, TEMPLATE = "/flows/-/templates/", "/flows/-/templates/default/a/"
POSTS = (f"{DETAIL}delete/", f"{TEMPLATE}run/", f"{TEMPLATE}delete/")


def put(resource, obj):
    obj["metadata"] |= {"annotations": {CREATOR_ANNOTATION: "sam"}}
    return store.write(Create(resource, obj))[0]


@pytest.fixture
def pair(sam):
    """A flow of two jobs, of which the first has completed and the second runs."""
    for name in "ab":
        put(JOB_TEMPLATES, template(name, task(replicas=2)))
    stored = put(JOB_FLOWS, flow(step("a"), step("b", "a")))
    controller = runner("jobflows")
    settle(controller)
    for name, phase in (("f-a", "Completed"), ("f-b", "Running")):
        end(name, phase)
        settle(controller)
    return stored


def test_lists_and_pages_say_how_far_a_flow_is_and_what_a_template_makes(sam, pair):
    row = page(sam, LIST).text(id=f"row-{pair.uid}")
    assert all(word in row for word in ("Running", "1 of 2", "1 of 2 jobs have completed.", "sam"))
    assert [page(sam, LIST + query).rows() for query in ("?phase=Failed", "?q=other")] == [[], []]
    shown = page(sam, DETAIL)
    drawn = [node for node in shown.tree.iter("svg") if node.get("class") == "graph-node"]
    nodes = {" ".join(text.text for text in node.iter("text")): node.get("data-hue") for node in drawn}
    assert nodes == {"a Completed": "green", "b Running": "blue"}
    links = [link.get("href") for link in shown.one(id="flow-graph").iter("a")]
    assert links == ["/jobs/default/f-a/", "/jobs/default/f-b/"]
    assert "1 of 2 jobs have completed." in shown.text(id="flow-head")
    first, _ = page(sam, TEMPLATES).rows()
    assert "default 2 1 sam" in page(sam, TEMPLATES).text(id=first)
    shown = page(sam, TEMPLATE)
    assert all(word in shown.text(id="template-head") for word in ("main × 2", "f-a"))
    assert ("kind: JobTemplate" in (text := shown.text(id="template-text")), "uid" in text) == (True, False)


def test_what_is_not_there_is_told_and_what_to_do_next(sam):
    assert "Make templates of its jobs first" in page(sam, LIST).text(id="table-empty")
    assert "give it to kubectl apply" in page(sam, TEMPLATES).text(id="table-empty")
    put(JOB_FLOWS, flow(step("a"), step("b", "a")))
    settle(runner("jobflows"))
    shown = page(sam, DETAIL)
    assert "There is no job template a" in shown.text(id="flow-head")
    assert "f-b Waiting b a" in shown.text(id="flow-jobs")
    assert not list(shown.one(id="flow-graph").iter("a"))


def test_a_template_is_run_and_a_job_that_is_refused_is_told(sam):
    controller = runner("jobflows")
    settle(controller)
    put(JOB_TEMPLATES, template("a"))
    answer = sam.post(f"{TEMPLATE}run/")
    (job,) = store.find(JOBS)
    assert (answer["Location"], job.name[:2]) == (f"/jobs/default/{job.name}/", "a-")
    metadata = job.object["metadata"]
    assert metadata["annotations"] == {"volcano.sh/createdByJobTemplate": "default.a", CREATOR_ANNOTATION: "sam"}
    assert "ownerReferences" not in metadata
    settle(controller)
    assert job.name in page(sam, TEMPLATE).text(id="template-head")
    put(JOB_TEMPLATES, template("b", queue="nowhere"))
    sam.post("/flows/-/templates/default/b/run/")
    assert "queue nowhere not found" in page(sam, "/flows/-/templates/default/b/").text(id="toasts")
    assert len(store.find(JOBS)) == 1


@pytest.mark.parametrize(("address", "resource"), [(DETAIL, JOB_FLOWS), (TEMPLATE, JOB_TEMPLATES)])
def test_only_what_the_page_showed_is_deleted(sam, pair, address, resource):
    """Somebody may have deleted it, and made another under its name."""
    uid = store.find(resource, namespace=PLACE, name=address.split("/")[-2])[0].uid
    assert f'name="uid" value="{uid}"' in sam.get(address).content.decode()
    sam.post(f"{address}delete/", {"uid": "another"})
    assert sam.get(address).status_code == 200
    assert sam.post(f"{address}delete/", {"uid": uid})["Location"] == address.rpartition("default/")[0]
    assert sam.get(address).status_code == 404


def test_who_did_not_make_it_sees_no_button_but_to_run_a_template(pair):
    other = reader("tom", "submitter", PLACE)
    assert page(other, DETAIL).actions().isdisjoint(POSTS)
    assert page(other, TEMPLATE).actions() & set(POSTS) == {f"{TEMPLATE}run/"}
