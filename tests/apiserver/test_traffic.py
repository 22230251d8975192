"""What clients ask of a kube-apiserver, asked of ours: it answers the same, but for what is known to differ."""

import functools
import json
from pathlib import Path

import httpx
import pytest

from apiserver.http import authentication
from cluster import access
from cluster.access import tokens
from cluster.api import custom_kinds
from cluster.bootstrap import bootstrap
from kube import resources
from proof.systems.system import PROJECT
from proof.traffic import exchange, table, touched
from proof.traffic.allowed import ALLOWED
from proof.traffic.replay import QUIET_S, Replay
from tests.apiserver import asked
from tests.apiserver.client import serving
from tests.cluster.api.conftest import make_user
from tests.tables import lines


@pytest.fixture
def client(transactional_db, redis):
    authentication._cache.clear()
    bootstrap()
    secret = tokens.issue(access.CONSOLE, make_user("admin", is_superuser=True), "laptop", tokens.DAY_S).secret
    options = {"headers": {"authorization": f"Bearer {secret}"}, "timeout": QUIET_S, "verify": False}
    with serving(authentication.authenticate) as url, httpx.Client(base_url=url, **options) as found:
        yield found
    custom_kinds._definitions.clear()
    resources.set_custom(())


@pytest.mark.parametrize("name", exchange.names())
def test_clients_are_answered_as_by_kubernetes(client, name):
    unused = [each for each in ALLOWED if name in each.recordings.split()]
    unexpected = []
    for found in Replay(client).differences(exchange.load(name)):
        allowing = [each for each in ALLOWED if each.allows(name, found)]
        unused = [each for each in unused if each not in allowing]
        if not allowing:
            unexpected.append(str(found))
    assert unexpected == []
    assert unused == []


def test_each_difference_that_is_allowed_is_documented_in_a_table_that_is_up_to_date():
    page = (Path(__file__).parents[2] / "docs" / "kubernetes-api-differences.md").read_text()
    assert [each.topic for each in ALLOWED if f"\n| {each.topic} |" not in page] == []
    assert table.PAGE.read_text() == table.text(), "python -m proof.traffic table writes it"
    assert touched.missing() == []


GOLDEN = json.loads((PROJECT / "tests/golden/kubernetes/statuses.json").read_text())
SOMEBODY = access.Actor(asked.SOMEBODY, ("system:authenticated",))
# What is otherwise here, as requests.txt says behind the arrow: of what cannot be read, other libraries say other things;
# some texts there are a Status here; and here is more of what helps.
OTHERWISE = {each.words: each.expected.split() for each in lines("kubernetes/requests", asked.ANSWERED)}


def test_statuses_are_those_of_kubernetes(api):
    clients = {"": api, asked.SOMEBODY: api.as_(SOMEBODY)}

    def send(each):
        client = clients[each.user]
        return client.request(each.method, each.path, each.content(), each.content_type, headers=each.headers)

    for each in asked.THERE:
        assert send(each).status_code == 201
    found = {case: asked.seen(send(each)) for case, each in asked.CASES.items()}
    compared = {case: comparable(case, each, GOLDEN[case]) for case, each in found.items()}
    assert compared == {case: comparable(case, each, each) for case, each in GOLDEN.items()}
    assert {each["said"]["kind"] for each in found.values()} == {"Status"}


def comparable(case, found, golden):
    """Return an answer without what is otherwise here, and its message as far as Kubernetes' own goes."""
    found, expected = json.loads(json.dumps(found)), golden["said"]
    for path in OTHERWISE.get(case, ()):
        *above, last = path.split(".")
        functools.reduce(dict.__getitem__, above, found).pop(last, None)
    if "message" in found.get("said", {}):
        length = len(expected.get("message", "")) if isinstance(expected, dict) else 0
        found["said"]["message"] = found["said"]["message"][:length]
    return found
