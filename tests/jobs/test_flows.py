"""The flow controller on the real store, and the pages of flows and templates."""

import pytest

from cluster.bootstrap import bootstrap
from cluster.store import Create, Delete, Patch, store
from kube.resources import CREATOR_ANNOTATION, JOB_FLOWS, JOB_TEMPLATES, JOBS
from tests.dashboard.pages.conftest import page, reader
from tests.jobs import made
from tests.jobs.builders import task
from tests.jobs.control import messages
from tests.jobs.made import NAMESPACE, end, flow, job_names, runner, settle, step, template
from tests.tables import cases

DIAMOND = (step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))
LINE, ONE = (step("a"), step("b", "a")), (step("a"),)
SERVERS = (template("a", task("server", replicas=2)), template("b"))
LIST, DETAIL = "/flows/", "/flows/default/f/"
TEMPLATES, TEMPLATE = "/flows/-/templates/", "/flows/-/templates/default/a/"


def put(resource, obj):
    obj["metadata"] |= {"annotations": {CREATOR_ANNOTATION: "sam"}}
    return store.write(Create(resource, obj))[0]


def submit(obj, *templates):
    for each in templates:
        put(JOB_TEMPLATES, template(each) if isinstance(each, str) else each)
    return put(JOB_FLOWS, obj)


def state():
    return store.get(JOB_FLOWS, NAMESPACE, "f").object["status"]["state"]


class Story(made.Story):
    """A flow and its jobs, each by the name of its template; what is no verb is a job that comes to a phase: `a Running`."""

    consumer, kind, name, prefix = "jobflows", JOB_FLOWS, "f", "f-"

    def begins(self):
        self.uids = {job.uid for job in store.find(JOBS)}

    def does(self, step):
        verb, *words = step.split()
        act = getattr(self, verb, None)
        act(*words) if act else end(f"f-{verb}", *words)

    def seen(self):
        return {
            "jobs": " ".join(name.removeprefix("f-") for name in job_names()),
            "anew": " ".join(job.name.removeprefix("f-") for job in store.find(JOBS) if job.uid not in self.uids),
            "state": f"{state()['phase']} {state()['reason']}",
        }

    def message(self):
        return state()["message"]

    def wait(self, seconds):
        self.clock.move(int(seconds))

    def template(self, name):
        store.write(Create(JOB_TEMPLATES, template(name)))

    def retain(self, policy):
        store.write(Patch(JOB_FLOWS, NAMESPACE, "f", {"spec": {"jobRetainPolicy": policy}}))

    def serve(self, number):
        """So many of the two servers of the first job run."""
        phases = {"Running": int(number), "Pending": 2 - int(number)}
        end("f-a", "Running", taskStatusCount={"server": {"phase": phases}})


@pytest.fixture
def controller(transactional_db, runner_mode):
    bootstrap()
    return runner("jobflows")


@cases("obj, templates, story", {
    "jobs are made in the order of their dependencies": (flow(*DIAMOND), "abcd", """
        → jobs a; state Pending InProgress
        a Running → jobs a; state Running InProgress
        a Completed → jobs a b c; state Running InProgress
        b Completed → jobs a b c; state Running InProgress
        c Completed → jobs a b c d; state Running InProgress
        d Completed → jobs a b c d; state Succeed AllCompleted"""),
    "jobs of a flow that has succeeded are deleted on request and never made again": (
        flow(*LINE, jobRetainPolicy="delete"), "ab", """
        →
        a Completed → jobs a b; state Running InProgress
        b Completed → jobs; state Succeed AllCompleted
        restart → jobs; state Succeed AllCompleted"""),
    "retained jobs go when the policy becomes delete": (flow(*ONE), "a", """
        →
        a Completed → jobs a; state Succeed AllCompleted
        retain delete → jobs; state Succeed AllCompleted"""),
    **{
        f"a job that completed and was deleted counts as completed{words}": (flow(*LINE), "ab", f"""
        →
        a Completed, delete a{then} → jobs b; state Running InProgress
        b Completed → jobs b; state Succeed AllCompleted""")
        for words, then in (("", ""), (", also while nobody was there", ", restart"))
    },
    "a missing template is waited for": (flow(step("a"), step("b")), "b", """
        → jobs b; state Pending TemplateNotFound
        template a → jobs a b; state Pending InProgress"""),
    "a probe lets a job start before its target has completed": (
        flow(step("a"), step("b", "a", probe=[("server", "Running")])), SERVERS, """
        →
        serve 1 → jobs a; state Running InProgress
        serve 2 → jobs a b; state Running InProgress"""),
    "a job that was deleted before its end is made anew": (flow(*ONE), "a", """
        → state Pending InProgress
        a Running →
        wait 1, delete a → anew a"""),
    "a job of somebody else has the name until it is gone": (flow(*ONE), "a", """
        foreign a → state Pending NameTaken
        delete a → anew a"""),
    "a closed queue holds a job back until it is open": (flow(*ONE), [template("a", queue="night")], """
        queue Closed → jobs; state Pending JobRefused; says queue `night` status is `Closed`
        queue Open, wait 11 → jobs a"""),
    "a flow that is being deleted makes nothing": (flow(*ONE), "a", "going → jobs; state Terminating Deleted"),
})  # fmt: skip
def test_a_flow_goes_on_as_its_jobs_do(controller, moved_clock, obj, templates, story):
    submit(obj, *templates)
    Story(controller, moved_clock).goes(story)
    if state()["phase"] == "Succeed":
        assert len(messages("Created")) == len(obj["spec"]["flows"])


def test_a_job_says_whose_it_is_and_what_it_was_made_from(controller):
    stored = submit(flow(*ONE), template("a", priorityClassName="high"))
    settle(controller)
    job = store.get(JOBS, NAMESPACE, "f-a").object
    labels = {"volcano.sh/createdByJobTemplate": "default.a", "volcano.sh/createdByJobFlow": "default.f"}
    assert job["metadata"]["labels"] == labels
    assert job["metadata"]["annotations"] == {**labels, CREATOR_ANNOTATION: "sam"}
    owner = job["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("JobFlow", stored.uid, True)
    assert (job["spec"]["queue"], job["spec"]["priorityClassName"]) == ("default", "high")


def test_a_template_lists_the_jobs_that_were_made_from_it(controller):
    def made():
        settle(controller)
        return store.get(JOB_TEMPLATES, NAMESPACE, "a").object["status"]["jobDependsOnList"]

    submit(flow(*ONE), "a")
    submit(flow(*ONE, name="g.h"))
    assert made() == ["f-a", "g.h-a"]
    store.write(Delete(JOB_FLOWS, NAMESPACE, "f"), Delete(JOBS, NAMESPACE, "f-a"))
    assert made() == ["g.h-a"]
    store.write(Delete(JOB_TEMPLATES, NAMESPACE, "a"), Create(JOB_TEMPLATES, template("a")))
    assert made() == ["g.h-a"]
    before = store.revision()
    settle(runner("jobflows"))
    assert store.revision() == before, "who is asked again writes nothing"


@pytest.fixture
def pair(sam):
    """A flow of two jobs, of which the first has completed and the second runs."""
    stored = submit(flow(*LINE), *(template(name, task(replicas=2)) for name in "ab"))
    controller = runner("jobflows")
    settle(controller)
    for name, phase in (("f-a", "Completed"), ("f-b", "Running")):
        end(name, phase)
        settle(controller)
    return stored


def test_lists_and_pages_say_how_far_a_flow_is_and_what_a_template_makes_which_others_may_only_run(sam, pair):
    row = page(sam, LIST).text(id=f"row-{pair.uid}")
    assert all(word in row for word in ("Running", "1 of 2", "1 of 2 jobs have completed.", "sam"))
    assert [page(sam, LIST + query).rows() for query in ("?phase=Failed", "?q=other")] == [[], []]
    document = page(sam, DETAIL)
    drawn = document.tree.xpath("//*[@class='graph-node']")
    assert {" ".join(text.text for text in node.iter("text")): node.get("data-hue") for node in drawn} == {
        "a Completed": "green",
        "b Running": "blue",
    }
    assert document.tree.xpath("//*[@id='flow-graph']//a/@href") == ["/jobs/default/f-a/", "/jobs/default/f-b/"]
    assert "1 of 2 jobs have completed." in document.text(id="flow-head")
    first, _ = page(sam, TEMPLATES).rows()
    assert "default 2 1 sam" in page(sam, TEMPLATES).text(id=first)
    document = page(sam, TEMPLATE)
    assert all(word in document.text(id="template-head") for word in ("main × 2", "f-a"))
    assert ("kind: JobTemplate" in (text := document.text(id="template-text")), "uid" in text) == (True, False)
    other = reader("tom", "submitter", NAMESPACE)
    offered = {each for address in (DETAIL, TEMPLATE) for each in page(other, address).actions() if "/flows/" in each}
    assert offered == {f"{TEMPLATE}run/"}


def test_what_is_not_there_is_told_and_what_to_do_next(sam):
    assert "Make templates of its jobs first" in page(sam, LIST).text(id="table-empty")
    assert "give it to kubectl apply" in page(sam, TEMPLATES).text(id="table-empty")
    submit(flow(*LINE))
    settle(runner("jobflows"))
    document = page(sam, DETAIL)
    assert "There is no job template a" in document.text(id="flow-head")
    assert "f-b Waiting b a" in document.text(id="flow-jobs")
    assert not list(document.one(id="flow-graph").iter("a"))


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
    uid = store.find(resource, namespace=NAMESPACE, name=address.split("/")[-2])[0].uid
    assert f'name="uid" value="{uid}"' in sam.get(address).content.decode()
    sam.post(f"{address}delete/", {"uid": "another"})
    assert sam.get(address).status_code == 200
    assert sam.post(f"{address}delete/", {"uid": uid})["Location"] == address.rpartition("default/")[0]
    assert sam.get(address).status_code == 404
