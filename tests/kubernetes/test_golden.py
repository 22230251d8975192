"""That `tests/golden/kubernetes` says what a kube-apiserver says: the tests of our own server count on it.

`pytest tests/kubernetes/test_golden.py --update-golden` writes it anew.
"""

import json
import ssl
from pathlib import Path

import httpx
import pytest

from cluster.remote.http import paths
from proof.harness.waiting import HANG_S
from tests.apiserver import asked
from tests.cluster.rules import defaulted

pytestmark = pytest.mark.system
GOLDEN = Path(__file__).parents[1] / "golden" / "kubernetes"


@pytest.fixture
def client(kubernetes):
    """Return an HTTP client with every right."""
    with kubernetes.administrator() as found:
        found.base_url = kubernetes.server
        yield found


@pytest.fixture
def is_as_before(request):
    """Compare with what was recorded, or record."""

    def compare(name, found):
        path = GOLDEN / f"{name}.json"
        if request.config.getoption("--update-golden"):
            path.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
        assert found == json.loads(path.read_text())

    return compare


def test_defaults(client, is_as_before):
    found = {}
    for case, (kind, obj) in defaulted.CASES.items():
        path = paths.collection(kind, obj["metadata"].get("namespace", ""))
        answer = client.post(f"{path}?dryRun=All", json=obj)
        found[case] = defaulted.seen(answer.json())
    refused = {case: each["message"] for case, each in found.items() if each["kind"] == "Status"}
    assert not refused
    is_as_before("defaults", found)


@pytest.fixture
def unknown(kubernetes):
    """Return an HTTP client without a certificate."""
    context = ssl.create_default_context(cafile=kubernetes.identities.ca)
    with httpx.Client(verify=context, timeout=HANG_S, base_url=kubernetes.server) as found:
        yield found


def test_statuses(client, unknown, is_as_before):
    found = {}
    for each in asked.THERE:
        assert _send(client, each).status_code == 201
    for case, each in asked.CASES.items():
        found[case] = asked.seen(_send(unknown if "Authorization" in each.headers else client, each))
    is_as_before("statuses", found)


def _send(client, each):
    headers = {**each.headers, **({"Impersonate-User": each.user} if each.user else {})}
    if each.body is not None:
        headers["Content-Type"] = each.content_type
    return client.request(each.method, each.path, content=each.content(), headers=headers)
