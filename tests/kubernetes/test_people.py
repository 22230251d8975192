"""Who may do what: people as themselves, and clusters in which nothing may be changed."""

import html
import json

import httpx
import pytest
from django.contrib.auth.models import Group, User
from websockets.sync.client import connect

from kube.resources import CRON_JOBS, EVENTS, JOBS, NAMESPACES, PODS
from proof.harness.waiting import HANG_S, until
from proof.kubernetes import world
from proof.kubernetes.cluster import DEPLOY, Kubernetes
from proof.systems.work import Person, job, problems, shell
from tests.builders import namespace
from tests.kubernetes.objects import sample

pytestmark = pytest.mark.system
NAME = "admin"  # of the first account
VERA, PASSWORD, GROUP = "vera", "correct-horse-battery", "speech"
PEOPLE = "volcano-ui-people"


@pytest.fixture(scope="module")
def system(kubernetes, tmp_path_factory):
    """A system that makes changes in the name of who asks for them."""
    kubernetes.kubectl("apply", "-f", DEPLOY / "base" / "roles.yaml")
    # As docs/how-to/real-clusters.md says: people beside the first are named in a role of one's own.
    kubernetes.kubectl(
        *("create", "clusterrole", PEOPLE, "--verb=impersonate", "--resource=users", "--resource=groups"),
        *(f"--resource-name={name}" for name in (VERA, GROUP)),
    )
    config = world.account(kubernetes, "volcano-ui-read-only", "volcano-ui-impersonate", PEOPLE)
    folder = tmp_path_factory.mktemp("system")
    with world.showing(folder, config, VOLCANO_UI_IMPERSONATE="1") as running:
        world.live(running)
        yield running


@pytest.fixture
def person(system):
    with Person(system) as somebody:
        yield somebody


def jobs(kubernetes):
    found = [each["metadata"] for each in kubernetes.get(JOBS.id, "-A")["items"]]
    return {f"{each['namespace']}/{each['name']}" for each in found}


def bind(kubernetes, namespace, role, person):
    kubernetes.kubectl("create", "rolebinding", person, "-n", namespace, f"--clusterrole={role}", f"--user={person}")


def test_what_the_person_may_do_is_done_in_his_name_and_else_refused_in_the_clusters_words(kubernetes, person, system):
    """He may change things in one namespace alone."""
    kubernetes.apply(namespace("team-a"))
    bind(kubernetes, "team-a", "volcano-ui-beside", NAME)
    with system.store() as here:
        until(lambda: here.find(NAMESPACES, name="team-a"), what="the namespace here")
    person.create(job("own", shell("true"), namespace="team-a"))
    assert "team-a/own" in jobs(kubernetes)
    requests = [each for each in kubernetes.requests_by(world.USER) if each["verb"] == "create"]
    made = [each for each in requests if each["objectRef"].get("name") == "own" and "dryRun" not in each["requestURI"]]
    assert [each["impersonatedUser"]["username"] for each in made] == [NAME]
    assert person.post("/jobs/team-a/own/delete/").status_code == 302
    assert "team-a/own" not in jobs(kubernetes)
    answer = person.submit(job("foreign", shell("true")))
    assert answer.status_code in (403, 422), problems(answer)
    assert f'User "{NAME}" cannot create resource "jobs"' in html.unescape(answer.text)
    assert "default/foreign" not in jobs(kubernetes)
    kubernetes.kubectl("delete", "namespace", "team-a")


SEES = "volcano-ui-view"
OBJECTS = (JOBS, PODS, EVENTS, CRON_JOBS)
LISTS = ("/jobs/", "/events/", "/cronjobs/")


class Vera(Person):
    """Somebody with an account of her own, who has logged in with her password."""

    def __init__(self, system):
        self.system = system
        self.client = httpx.Client(base_url=system.base, timeout=HANG_S, follow_redirects=True)
        self.get("/login/")
        assert self.post("/login/", username=VERA, password=PASSWORD).status_code == 302


@pytest.fixture(scope="module")
def vera(kubernetes, system, django_db_blocker):
    """Somebody with rights in one of two namespaces, both of which have an object of each kind."""
    for name in ("left", "right"):
        kubernetes.apply(namespace(name))
        until(lambda name=name: "default" in kubernetes.kubectl("get", "serviceaccounts", "-n", name))
        for kind in OBJECTS:
            made = sample(kind, f"{name}-one", namespace=name)
            if kind == EVENTS:  # what happens lies where it happens
                made["involvedObject"] = {**made["involvedObject"], "namespace": name}
            kubernetes.apply(made)
    bind(kubernetes, "left", SEES, VERA)
    with django_db_blocker.unblock(), Person(system) as person, system.store() as here:
        answer = person.post("/access/users/", name=VERA, password=PASSWORD)
        assert answer.status_code == 302, problems(answer)
        wanted = {f"{name}-one" for name in ("left", "right")}
        until(lambda: all(wanted <= {each.name for each in here.find(kind)} for kind in OBJECTS))
        User.objects.using(here.using).get(username=VERA).groups.add(Group.objects.using(here.using).create(name=GROUP))
    with Vera(system) as somebody:
        yield somebody
    kubernetes.kubectl("delete", "namespace", "left", "right")


def shows(person, path, **params):
    return html.unescape(person.get(path, **params).text)


def test_person_with_rights_in_one_namespace_sees_that_one_and_no_other(kubernetes, vera):
    for page in LISTS:
        until(lambda page=page: "left-one" in shows(vera, page), what=f"what she may see on {page}")
        assert "right-one" not in shows(vera, page), page
    for search in ({"q": "one"}, {"namespace": "right"}, {"q": "right-one"}):
        assert "/jobs/right/" not in shows(vera, "/jobs/", **search), search
    own = sum(each.startswith("left/") for each in jobs(kubernetes))
    until(lambda: f">{own} in your namespaces<" in shows(vera, "/"), what="a count of those alone")
    for page in ("/jobs/right/right-one/", "/cronjobs/right/right-one/", "/jobs/right/right-one/log/?pod=right-one"):
        answer = vera.get(page)
        assert answer.status_code == 403, page
        assert f'User "{VERA}" cannot get resource' in html.unescape(answer.text), page


def test_logs_are_read_and_the_cluster_is_asked_about_her_in_her_name_alone(kubernetes, system, vera):
    with system.store() as here:
        until(lambda: here.find(PODS, name="left-one", phase="Running"), what="a pod that runs")
    answer = vera.get("/jobs/left/left-one/log/", pod="left-one")
    assert answer.status_code == 404, "its node is played and keeps no logs"
    requests = kubernetes.requests_by(world.USER)
    # Systems of other modules have the same account, and read logs elsewhere.
    about = [(each.get("objectRef", {}), each.get("impersonatedUser")) for each in requests]
    readers = [who for what, who in about if (what.get("subresource"), what.get("namespace")) == ("log", "left")]
    assert {each["username"] for each in readers} == {VERA}
    reviews = [each for each in requests if each["verb"] == "create" and "review" in each["requestURI"]]
    results = {(each["objectRef"]["resource"], each["responseStatus"]["code"]) for each in reviews}
    assert results == {("selfsubjectrulesreviews", 201)}
    assert {each["impersonatedUser"]["username"] for each in reviews} <= {VERA, NAME}
    assert any(GROUP in each["impersonatedUser"]["groups"] for each in reviews)


def test_right_that_is_taken_away_ends_what_an_open_page_shows(kubernetes, system, vera):
    until(lambda: "left-one" in shows(vera, "/jobs/"), what="the job")
    assert vera.get("/jobs/left/left-one/").status_code == 200
    cookies = "; ".join(f"{name}={value}" for name, value in vera.client.cookies.items())
    address = f"ws://127.0.0.1:{system.port}/live/"
    with connect(address, additional_headers={"Cookie": cookies}, origin=system.base) as socket:
        topics = ("jobs:list", "jobs:detail?name=left-one&namespace=left")
        for topic in topics:
            socket.send(json.dumps({"op": "subscribe", "id": topic, "topic": topic, "revision": 0}))
        for topic in topics:
            assert "left-one" in hear(socket, topic)
        kubernetes.kubectl("delete", "rolebinding", VERA, "-n", "left")
        try:
            last = None
            while "left-one" not in (last := hear(socket, "")) or '"denied"' not in last:
                pass
            assert f'User \\"{VERA}\\" cannot get resource' in last
            until(lambda: "left-one" not in shows(vera, "/jobs/"), what="a list without it")
            assert vera.get("/jobs/left/left-one/").status_code == 403
        finally:
            bind(kubernetes, "left", SEES, VERA)
    until(lambda: vera.get("/jobs/left/left-one/").status_code == 200, what="the right that is back")


def hear(socket, topic):
    """Return the next message, about a topic if one is named."""
    while True:
        text = socket.recv(timeout=HANG_S)
        message = json.loads(text)
        if message["op"] in ("parts", "denied") and topic in ("", message["id"]):
            return text


def test_cluster_without_volcano_is_shown_and_changed_once_it_is_installed(tmp_path):
    with (
        Kubernetes(tmp_path / "plain", nodes=1, volcano=False) as plain,
        world.showing(tmp_path, plain.config) as system,
        system.store() as here,
        Person(system) as person,
    ):
        world.live(system)
        assert "read-only" in world.strip_text(system)
        world.equal(plain, here)
        answer = person.submit(job("early", shell("true")))
        assert "it does not serve Volcano's jobs" in html.unescape(answer.text)
        plain.install_volcano()
        until(lambda: "read-only" not in world.strip_text(system), what="the word that it may be changed")
        world.live(system)
        person.create(job("late", shell("true")))
        assert "default/late" in jobs(plain)
    plain.assert_gone()
