"""The pure rules of joining: addresses, fingerprints, and what writes are as requests."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster import fingerprint, issuing
from cluster.writes import Create, Delete, Patch
from kube.resources import EVENTS, LEASES, NODES, PODS
from node.joined import addresses, requests
from tests.tables import cases


@pytest.mark.parametrize("url", [
    "https://cluster.example:8443", "https://192.0.2.7", "https://[2001:db8::1]:8443",
    "http://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080",
])  # fmt: skip
def test_an_api_server_is_reached_over_tls_or_on_this_machine(url):
    assert addresses.checked(url) == url
    assert addresses.checked(f"{url}/") == url


@pytest.mark.parametrize(("url", "words"), [
    ("http://cluster.example:8443", "not encrypted"),
    ("http://192.0.2.7", "not encrypted"),
    ("http://127.0.0.1.example.org", "not encrypted"),
    ("cluster.example:8443", "https://host:8443"),
    ("https://", "https://host:8443"),
    ("https://host:0", "https://host:8443"),
    ("https://host:99999", "https://host:8443"),
    ("https://host/path", "https://host:8443"),
    ("https://user:secret@host", "https://host:8443"),
    ("https://host?x=1", "https://host:8443"),
    ("ftp://host", "https://host:8443"),
    ("", "https://host:8443"),
])  # fmt: skip
def test_other_addresses_are_refused_with_the_remedy(url, words):
    with pytest.raises(ValueError, match=words):
        addresses.checked(url)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_refused(text):
    try:
        found = addresses.checked(text)
    except ValueError:
        return
    assert found.startswith(("http://", "https://"))
    assert addresses.checked(found) == found


@pytest.fixture(scope="module")
def authority():
    made = issuing.authority(datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=10))
    return issuing.certificate_text(made[0]).decode()


def test_a_fingerprint_is_over_what_a_certificate_says(authority):
    import hashlib

    der = ssl.PEM_cert_to_DER_cert(authority)
    assert fingerprint.of(authority) == f"sha256:{hashlib.sha256(der).hexdigest()}"
    assert fingerprint.of(authority.replace("\n", "\r\n")) == fingerprint.of(authority)
    assert fingerprint.of(f"some words\n{authority}\n") == fingerprint.of(authority)
    assert fingerprint.FORM.fullmatch(fingerprint.of(authority))


def test_more_certificates_have_another_fingerprint(authority):
    assert fingerprint.of(authority + authority) != fingerprint.of(authority)


@given(st.text(max_size=60))
def test_what_holds_no_certificate_has_no_fingerprint(text):
    assert fingerprint.of(text) == ""


POD = "/api/v1/namespaces/d/pods/p"


@cases("write, method, path, body", {
    "the status of a pod, pinned": (
        Patch(PODS, "d", "p", {"status": {"phase": "Running", "reason": None}}, "status", uid="u", version="7"),
        "PATCH", f"{POD}/status",
        {"metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"phase": "Running", "reason": None}},
    ),
    "the status of a node": (
        Patch(NODES, "", "n", {"status": {"capacity": {}}}, "status"), "PATCH", "/api/v1/nodes/n/status",
        {"metadata": {}, "status": {"capacity": {}}},
    ),
    "a lease": (
        Patch(LEASES, "kube-node-lease", "n", {"spec": {"renewTime": "t"}}), "PATCH",
        "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n",
        {"spec": {"renewTime": "t"}, "metadata": {}},
    ),
    "an event": (
        Create(EVENTS, {"metadata": {"namespace": "d", "generateName": "e"}}), "POST", "/api/v1/namespaces/d/events",
        {"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "d", "generateName": "e"}},
    ),
    "a pod that goes": (
        Delete(PODS, "d", "p", uid="u", grace=0), "DELETE", POD,
        {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Background",
                "preconditions": {"uid": "u"},
                "gracePeriodSeconds": 0,
            },
    ),
})  # fmt: skip
def test_a_write_is_one_request_that_says_the_same(write, method, path, body):
    asked = requests.of(write)
    assert (asked.method, asked.path, asked.body) == (method, path, body)
