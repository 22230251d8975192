"""The addresses of pods."""

from __future__ import annotations

import pytest

from jobs.plugins import addresses
from tests.jobs.builders import task
from tests.tables import cases


@pytest.mark.shows("5.1/address", "5.1/one host")
@cases("pod, replicas, expected", {
    "names of pod and job": ({}, 2, ["demo-main-0.demo", "demo-main-1.demo"]),
    "its own subdomain": ({"subdomain": "own"}, 1, ["demo-main-0.own"]),
    "one host for all pods": ({"hostname": "h"}, 3, ["h.demo"]),
    "both its own": ({"hostname": "h", "subdomain": "own"}, 1, ["h.own"]),
    "a host of no pod": ({"hostname": "h"}, 0, []),
    "no pod": ({}, 0, []),
})  # fmt: skip
def test_addresses_of_a_task(pod, replicas, expected):
    found = addresses.of_task("demo", task(replicas=replicas, pod=pod))
    assert [host.address for host in found] == expected


def test_a_pod_has_an_address_before_it_exists():
    assert addresses.of_pod("demo", task(replicas=0), 4).address == "demo-main-4.demo"


@pytest.mark.parametrize("junk", [None, 1, {}, {"template": [], "replicas": "x"}, {"name": 1}], ids=repr)
def test_what_is_no_task_has_no_addresses(junk):
    assert addresses.of_task("demo", junk) == []
