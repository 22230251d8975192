"""Which webhooks there are, and what the API server is told of them."""

from __future__ import annotations

import pytest

from cluster.remote.webhooks import hooks
from cluster.remote.webhooks.hooks import Address

SERVICE = Address("webhooks.pages.svc", 443)


def by_name(configuration):
    return {each["name"]: each for each in configuration["webhooks"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("192.0.2.7:9443", Address("192.0.2.7", 9443)),
        ("[2001:db8::1]:9443", Address("2001:db8::1", 9443)),
        ("webhooks.pages.svc:443", SERVICE),
    ],
)
def test_address_is_read(text, expected):
    assert hooks.address(text) == expected


@pytest.mark.parametrize("text", ["", "host", "host:", ":443", "host:0", "host:65536", "https://host:1", "host:x"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="not a host and a port"):
        hooks.address(text)


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("webhooks.pages.svc", ("webhooks", "pages")),
        ("webhooks.pages.svc.cluster.local", None),
        ("svc", None),
        ("192.0.2.7", None),
    ],
)
def test_a_service_is_known_by_its_name(host, service):
    assert Address(host, 443).service == service


@pytest.mark.parametrize(
    ("host", "usual", "expected"),
    [
        pytest.param("192.0.2.7", "127.0.0.1", "0.0.0.0", id="the pages are for this machine only"),
        pytest.param("2001:db8::1", "127.0.0.1", "::", id="an API server that speaks IPv6"),
        pytest.param("127.0.0.1", "127.0.0.1", "127.0.0.1", id="an API server on this machine"),
        pytest.param("webhooks.pages.svc", "::", "::", id="in a cluster"),
    ],
)
def test_webhooks_listen_where_the_api_server_reaches_them(host, usual, expected):
    assert hooks.interface(Address(host, 443), usual) == expected


def test_api_server_finds_each_webhook_at_its_path():
    inside = hooks.configurations(SERVICE, "bundle", "pages")["validate"]
    found = by_name(inside)["validatejob.volcano.sh"]["clientConfig"]
    service = {"name": "webhooks", "namespace": "pages", "path": "/jobs/validate", "port": 443}
    assert found == {"service": service, "caBundle": "bundle"}
    outside = hooks.configurations(Address("2001:db8::1", 9443), "bundle", "pages")["mutate"]
    urls = {each["clientConfig"]["url"] for each in outside["webhooks"]}
    assert "https://[2001:db8::1]:9443/queues/mutate" in urls


def test_operations_are_volcanos_and_no_status_is_asked_about():
    entries = [
        each for configuration in hooks.configurations(SERVICE, "b", "u").values() for each in configuration["webhooks"]
    ]
    rules = {each["name"]: each["rules"][0] for each in entries}
    assert rules["mutatejob.volcano.sh"]["operations"] == ["CREATE"]
    assert rules["validatejob.volcano.sh"]["operations"] == ["CREATE", "UPDATE"]
    assert rules["validatequeue.volcano.sh"]["operations"] == ["CREATE", "UPDATE", "DELETE"]
    assert not [rule for rule in rules.values() if "/" in rule["resources"][0]]
    ignored = [each["name"] for each in entries if each["failurePolicy"] == "Ignore"]
    assert ignored == ["validatecommand.volcano.sh"], "what refuses nothing holds nothing up"


def test_user_cannot_write_into_the_condition():
    [entry, *_] = hooks.configurations(SERVICE, "b", 'a" || true || "')["mutate"]["webhooks"]
    assert r'"a\" || true || \""' in entry["matchConditions"][0]["expression"]


def test_configuration_is_written_only_when_it_differs():
    wanted = hooks.configurations(SERVICE, "new", "u")["mutate"]
    old = {**hooks.configurations(SERVICE, "old", "u")["mutate"], "metadata": {"name": "x", "resourceVersion": "7"}}
    changed = hooks.changed(old, wanted)
    assert changed["metadata"]["resourceVersion"] == "7"
    assert changed["webhooks"] == wanted["webhooks"]
    assert hooks.changed(changed, wanted) is None


def test_a_configuration_trusts_what_all_its_webhooks_do():
    wanted = hooks.configurations(SERVICE, "new", "u")["mutate"]
    assert hooks.trusts(wanted, "new")
    assert not hooks.trusts(wanted, "newer")
    assert not hooks.trusts({"webhooks": []}, "new")
    older = hooks.configurations(SERVICE, "old", "u")["mutate"]["webhooks"]
    assert not hooks.trusts({"webhooks": [*wanted["webhooks"][1:], older[0]]}, "new")
