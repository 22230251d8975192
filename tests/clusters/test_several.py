"""Several clusters behind one address: one login, roles of each, and one that is away keeps nobody from the others."""

import json
import os
import secrets
import signal
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from cluster.several import reports
from proof.harness.waiting import until
from proof.systems.system import System, running
from proof.systems.work import COMPLETED, Page, Person, job, shell

pytestmark = pytest.mark.system

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The cluster that the others call dev."""
    with running(tmp_path_factory.mktemp("first") / "data") as system:
        yield system


@pytest.fixture(scope="module")
def many(first, tmp_path_factory):
    """One system of two clusters: home of its own, and dev."""
    config = first.kubeconfig(tmp_path_factory.mktemp("kubeconfig") / "config")
    clusters = f"home=embedded,dev={config}"
    with running(tmp_path_factory.mktemp("many") / "data", VOLCANO_UI_CLUSTERS=clusters) as system:
        yield system


@pytest.fixture
def person(many):
    with Person(many) as somebody:
        yield somebody


def submit(person, cluster, name):
    """Submit a job in a cluster; return the address of its page."""
    text = json.dumps(job(name, shell("true")))
    answer = person.post(f"/c/{cluster}/jobs/new/", token=secrets.token_hex(8), text=text)
    assert answer.status_code == 302, answer.text[-2000:]
    return answer.headers["location"]


def word_of(many, name):
    report = reports.read(reports.folder(many.data), name)
    return report and report.word


def pids(many, mark, cluster):
    """Return the ids of a cluster's processes whose command lines have the mark."""
    found = []
    for pid, line in many.processes().items():
        with suppress(OSError):
            environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            if mark in line and f"VOLCANO_UI_CLUSTER={cluster}".encode() in environment:
                found.append(pid)
    return found


def test_one_login_counts_for_both_and_each_shows_its_own(person):
    address = submit(person, "dev", "of-dev")
    assert address == "/c/dev/jobs/default/of-dev/"
    until(lambda: COMPLETED in person.get(address).text, what="the job's end in dev")
    assert "of-dev" in person.get("/c/dev/jobs/").text
    assert "of-dev" not in person.get("/c/home/jobs/").text
    assert person.get("/c/home/jobs/default/of-dev/").status_code == 404


def test_an_operation_in_a_cluster_acts_for_an_account_that_another_keeps(person):
    for number in (1, 2):
        submit(person, "dev", f"many-{number}")
    response = person.post("/c/dev/jobs/-/operations/", action="delete", which="all", q="many-")
    page = response.headers["location"]
    assert person.post(f"{page}confirm/").status_code == 302
    until(lambda: "2 of 2 jobs have a result" in person.get(page).text, what="the operation's end")
    until(lambda: "many-" not in person.get("/c/dev/jobs/").text, what="the end of the jobs")


def test_old_addresses_lead_to_the_first_cluster(person, many):
    assert person.get("/queues/", weight="1").url.path == "/c/home/queues/"
    answer = httpx.get(f"{many.base}//evil.example/", follow_redirects=False)
    assert answer.headers["location"] == "/c/home//evil.example/"


def test_roles_are_each_clusters_own_and_accounts_are_kept_by_the_first(person, many):
    created = person.post("/c/home/access/users/", name="dora", password=PASSWORD, namespace="*", role="viewer")
    assert created.status_code == 302, created.text[-2000:]
    with httpx.Client(base_url=many.base, timeout=120, follow_redirects=True) as dora:
        form = Page(dora.get("/c/dev/login/").text).forms["/c/dev/login/"]
        dora.post("/c/dev/login/", data={**form, "username": "dora", "password": PASSWORD})
        assert "You may not see jobs anywhere" not in dora.get("/c/home/").text
        assert "You may not see jobs anywhere" in dora.get("/c/dev/").text
        assert dora.get("/c/dev/access/").status_code == 403

        given = person.post("/c/dev/access/roles/", kind="user", subject="dora", role="administrator", namespace="*")
        assert given.status_code == 302, given.text[-2000:]
        page = until(lambda: (answer := dora.get("/c/dev/access/")).status_code == 200 and answer.text, what="the role")
        assert "/c/dev/access/users/admin/password/" not in page
        assert 'href="/c/home/access/"' in page
        token = dora.cookies.get(f"volcano_ui_csrf_{many.port}")
        taken = dora.post(
            "/c/dev/access/users/admin/password/",
            data={"password": f"{PASSWORD} of mine"},
            headers={"X-CSRFToken": token},
        )
        assert taken.status_code == 403
        assert "kept by the cluster home" in taken.text
        assert dora.get("/c/home/access/").status_code == 403

        dora.post("/c/dev/logout/", headers={"X-CSRFToken": token})
        assert dora.get("/c/home/jobs/").url.path == "/c/home/login/"


def test_a_cluster_whose_processes_are_killed_comes_back_and_the_other_goes_on(person, many):
    address = submit(person, "dev", "survivor")
    (up,) = pids(many, "up --behind-front", "dev")
    os.kill(up, signal.SIGKILL)
    away = until(lambda: (answer := person.get("/c/dev/jobs/")).status_code == 503 and answer.text, what="its end")
    assert "dev is not running" in away
    assert person.get("/c/home/jobs/").status_code == 200
    until(lambda: pids(many, "up --behind-front", "dev") not in ([], [up]), what="its next start")
    until(lambda: person.get(address).status_code == 200, what="its pages")
    until(lambda: COMPLETED in person.get(address).text, what="what happened meanwhile")


def test_a_cluster_that_is_away_is_called_so_and_the_other_goes_on(person, first, many):
    address = submit(person, "dev", "kept-in-mind")
    until(lambda: word_of(many, "dev") == "live", what="dev being live")
    first.stop()
    until(lambda: word_of(many, "dev") == "away", what="dev being away")
    page = person.get("/c/home/jobs/").text
    state = page.partition('id="state-of-cluster-dev"')[2].partition("</a>")[0]
    assert 'data-word="away"' in state
    assert "since" in state
    meanwhile = submit(person, "home", "meanwhile")
    until(lambda: COMPLETED in person.get(meanwhile).text, what="a job of home")
    assert person.get(address).status_code == 200
    first.start()
    until(lambda: word_of(many, "dev") == "live", what="dev being live again")


def test_kubeconfig_that_is_gone_stops_the_start(tmp_path):
    system = System(tmp_path, VOLCANO_UI_CLUSTERS=f"home=embedded,dev={tmp_path}/none")
    with pytest.raises(AssertionError, match=r"CLUSTERS has 'dev=.*none'.*cannot be read: No such file"):
        system.start()
