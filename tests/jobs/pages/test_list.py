from __future__ import annotations

import pytest

from jobs.pages import listing
from tests.jobs.pages import world
from tests.tables import cases


def rows(page):
    return [row.find("th/a").text for row in page.findall(".//tbody[@id='table-rows']/tr")]


def cells(page):
    """The cells of the only row, by the titles of their columns."""
    titles = ["".join(each.itertext()).strip() for each in page.findall(".//div[@id='table']//thead/tr/th")]
    (row,) = page.findall(".//tbody[@id='table-rows']/tr")
    return dict(zip(titles, row, strict=True))


def test_the_list_shows_each_job_with_phase_gang_queue_and_owner(client, alice, parse):
    world.make("train", "Running", began=world.START - 5000, counts={"running": 3})
    page = parse(client.get("/jobs/"))
    (row,) = page.findall(".//tbody[@id='table-rows']/tr")
    text = " ".join("".join(row.itertext()).split())
    assert "train" in text
    assert "Running" in text
    assert "3/4" in text
    assert "alice" in text


@pytest.mark.parametrize("phase", ["Pending", "Failed"])
def test_a_job_that_waits_or_failed_leads_with_the_cause_and_says_the_rest_on_hover(client, alice, parse, phase):
    said = "Exited with code 3 · stuck-worker-0. 1 of 4 pods succeeded; minAvailable is 4."
    world.make("stuck", phase, message=said)
    why = cells(parse(client.get("/jobs/")))["Why"]
    assert (why.text, why.get("title")) == ("exit 3 · worker-0", "1 of 4 pods succeeded; minAvailable is 4.")


def test_a_job_that_runs_needs_no_reason(client, alice, parse):
    world.make("train", "Running", message="3 of 4 pods are running.")
    assert cells(parse(client.get("/jobs/")))["Why"].text is None


def test_jobs_of_another_namespace_are_neither_shown_nor_counted(client, alice, parse):
    world.make("mine", "Running")
    world.make("theirs", "Running", namespace="other")
    page = parse(client.get("/jobs/?namespace=other"))
    assert rows(page) == []
    assert rows(parse(client.get("/jobs/"))) == ["mine"]
    assert "theirs" not in client.get("/jobs/").content.decode()


@cases("query, expected", {
    "text": ("q=tra", ["train"]),
    "phase": ("phase=Pending", ["wait"]),
    "owner": ("owner=bob", ["wait"]),
    "queue and order": ("queue=default&sort=name", ["train", "wait"]),
    "queue without jobs": ("queue=nowhere", []),
    "order turned round": ("sort=-name", ["wait", "train"]),
})  # fmt: skip
def test_filters_and_orders(client, alice, parse, query, expected):
    world.make("train", "Running")
    world.make("wait", "Pending", owner="bob")
    assert rows(parse(client.get(f"/jobs/?{query}"))) == expected


def test_counts_obey_every_filter_but_the_phase(client, alice, parse):
    world.make("train", "Running")
    world.make("wait", "Pending", owner="bob")
    page = parse(client.get("/jobs/?owner=bob&phase=Pending"))
    chips = {chip.find("b").tail or "".join(chip.itertext()).strip() for chip in page.findall(".//a[@class='chip']")}
    text = " ".join(sorted(chips))
    assert "Pending 1" in text
    assert "All 1" in text
    assert "Running" not in text


def test_a_job_that_no_controller_has_seen_is_pending(client, alice, parse):
    from cluster.store import Create, store
    from kube.resources import JOBS

    store.write(Create(JOBS, world.job_object("new")))
    assert rows(parse(client.get("/jobs/?phase=Pending"))) == ["new"]


def test_an_empty_list_offers_samples(client, alice, parse):
    page = parse(client.get("/jobs/"))
    forms = [form.get("action") for form in page.findall(".//form")]
    assert "/jobs/samples/primes/run/" in forms


def owners(client, parse, query=""):
    """The options of the filter, but for everybody."""
    return parse(client.get(f"/jobs/{query}")).xpath("//select[@name='owner']/option/@value")[1:]


def test_the_owners_of_the_jobs_that_the_reader_may_see_are_offered(client, alice, person, parse):
    world.make("mine", "Running")
    world.make("hers", "Running", owner="bob")
    world.make("nobodys", "Running", owner="")
    world.make("theirs", "Running", owner="zoe", namespace="other")
    assert owners(client, parse) == ["alice", "bob"]
    client.force_login(person("victor", "viewer", "*"))
    assert owners(client, parse) == ["alice", "bob", "victor", "zoe"]
    assert owners(client, parse, "?owner=gone") == ["alice", "bob", "victor", "zoe", "gone"]


@pytest.mark.parametrize("namespace", ["*", "default"])
def test_of_very_many_owners_the_first_are_offered_and_the_reader(
    client, cluster, person, parse, namespace, monkeypatch
):
    monkeypatch.setattr(listing, "MOST_OWNERS", 3)
    for name in ("", "ann", "bob", "cleo", "dan", "eve"):
        world.make(f"of-{name or 'nobody'}", "Running", owner=name)
    client.force_login(person("victor", "viewer", namespace))
    assert owners(client, parse) == ["ann", "bob", "cleo", "victor"]


def test_names_that_are_markup_are_text(client, alice):
    world.make("x", "Failed", message='"><script>alert(1)</script>', owner="<b>")
    content = client.get("/jobs/").content
    assert b"<script>alert" not in content
    assert b"<b></a>" not in content


@pytest.fixture
def visit(cluster, person, client):
    """Log somebody in with a role in a namespace, or without any, and return the browser."""

    def make(role, namespace):
        client.force_login(person("victor", role, namespace))
        return client

    return make


@cases("role, namespace, may", {
    "viewer": ("viewer", "*", False),
    "submitter elsewhere": ("submitter", "other", True),
    "submitter everywhere": ("submitter", "*", True),
})  # fmt: skip
def test_a_new_job_is_offered_to_those_who_may_submit_one(visit, role, namespace, may):
    browser = visit(role, namespace)
    assert ('href="/jobs/new/"' in browser.get("/jobs/").content.decode()) is may
    assert browser.get("/jobs/new/").status_code == (200 if may else 403)


@pytest.mark.parametrize(("namespace", "home"), [("other", "other"), ("*", "default"), ("default", "default")])
def test_a_new_job_begins_where_its_author_may_submit(visit, namespace, home):
    text = visit("submitter", namespace).get("/jobs/new/").content.decode()
    assert f"namespace: {home}\n" in text


LONGEST_TABLE = 60_000  # bytes of a hundred rows


def test_a_hundred_jobs_are_a_small_page(client, cluster, person):
    """A fifth of them wait and a fifth failed, each with a sentence; what is sent is all rows with the table's head."""
    client.force_login(person("boss", "operator", "*"))
    failed = "Exited with code 137 (OOMKilled) · {0}-worker-0, {0}-worker-3. 2 of 4 pods succeeded and 2 failed; minAvailable is 4."
    waits = "2 of 4 pods fit now: each needs 4 CPU, and node-17 has 2 free. 0 of 4 pods are running; minAvailable is 4."
    looks = [
        ("Completed", "", {"succeeded": 4}),
        ("Running", "", {"running": 4}),
        ("Failed", failed, {"succeeded": 2, "failed": 2}),
        ("Pending", waits, {}),
        ("Completed", "", {"succeeded": 4}),
    ]
    for number in range(100):
        name, (phase, message, counts) = f"train-{number:04d}", looks[number % 5]
        world.make(name, phase, began=world.START - 5000, message=message.format(name), counts=counts)
    page = client.get("/jobs/?per=100").content
    table = page[page.index(b"<table") : page.index(b"</table>")]
    assert table.count(b"<tr") == 101
    assert len(table) < LONGEST_TABLE
