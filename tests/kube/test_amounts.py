from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import amounts
from kube.kinds.core import PodSpec
from tests.tables import cases

resource_amounts = st.dictionaries(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), st.integers(0, 2**40))


def container(requests=None, limits=None, **fields):
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **fields}


def test_cpu_counts_thousandths_and_the_rest_whole_units():
    written = {"cpu": "1.5", "memory": "1Gi", "nvidia.com/gpu": 2, "ephemeral-storage": "1500m"}
    assert amounts.of(written) == {"cpu": 1500, "memory": 2**30, "nvidia.com/gpu": 2, "ephemeral-storage": 2}


def test_no_resource_list_is_nothing():
    assert amounts.of(None) == {}


@pytest.mark.shows(
    "scheduler 1.2/containers", "scheduler 1.2/init containers", "scheduler 1.2/overhead", "scheduler 1.2/pod level"
)
@cases("spec, expected", {
    "asks for nothing": ({}, {"pods": 1}),
    "containers add up": ({"containers": [container({"cpu": 1}), container({"cpu": "500m", "memory": "1Ki"})]},
        {"cpu": 1500, "memory": 1024, "pods": 1}),
    "a limit stands in for a missing request": ({"containers": [container({"cpu": 1}, {"cpu": 2, "memory": "1Ki"})]},
        {"cpu": 1000, "memory": 1024, "pods": 1}),
    "the largest init container counts where it is more": ({"containers": [container({"cpu": 1, "memory": "1Ki"})], "initContainers": [container({"cpu": 3}), container({"cpu": 2})]},
        {"cpu": 3000, "memory": 1024, "pods": 1}),
    "a sidecar runs beside what starts after it": ({"containers": [container({"cpu": 1})], "initContainers": [container({"cpu": 2}, restartPolicy="Always"), container({"cpu": "1500m"})]},
        {"cpu": 3500, "pods": 1}),
    "overhead comes on top": ({"containers": [container({"cpu": 1})], "overhead": {"cpu": "100m", "memory": 5}},
        {"cpu": 1100, "memory": 5, "pods": 1}),
    "a request of the pod replaces the sum": (
        {"containers": [container({"cpu": 1, "memory": 7})], "resources": {"requests": {"cpu": 4}}},
        {"cpu": 4000, "memory": 7, "pods": 1}),
})  # fmt: skip
def test_pod_request(spec, expected):
    assert amounts.pod_request(spec) == expected
    assert amounts.pod_request(msgspec.convert(spec, PodSpec)) == expected


def limited(**limits):
    return {"name": "c", "resources": {"limits": limits}}


@cases("spec, expected", {
    "the sum": ({"containers": [limited(cpu=1), limited(cpu=2, memory=3)]}, {"cpu": 3000, "memory": 3}),
    "or an init container": ({"containers": [limited(cpu=1)], "initContainers": [limited(cpu=4)]}, {"cpu": 4000}),
    "overhead on top of what is limited": ({"containers": [limited(cpu=1)], "overhead": {"cpu": 1, "memory": 5}},
        {"cpu": 2000}),
    "a limit of the pod replaces the sum": ({"containers": [limited(cpu=1)], "resources": {"limits": {"cpu": 4}}},
        {"cpu": 4000}),
    "requests are no limits": ({"containers": [container({"cpu": 1})]}, {}),
})  # fmt: skip
def test_pod_limits(spec, expected):
    assert amounts.pod_limits(spec) == expected


def test_nothing_fits_into_less_and_an_absent_resource_is_zero():
    assert amounts.fits({"cpu": 5, "gpu": 0}, {"cpu": 5})
    assert not amounts.fits({"cpu": 5}, {"cpu": 4})
    assert not amounts.fits({"gpu": 1}, {"cpu": 4})


@given(resource_amounts, resource_amounts)
def test_adding_and_subtracting_undo_each_other(a, b):
    undone = amounts.subtract(amounts.add(a, b), b)
    assert {name: amount for name, amount in undone.items() if amount} == {
        name: amount for name, amount in a.items() if amount
    }


@pytest.mark.shows("scheduler 1.1/tolerance", "scheduler 11/3")
@given(resource_amounts, resource_amounts)
def test_a_request_fits_exactly_when_nothing_free_becomes_negative(request_, free):
    rest = amounts.subtract(free, request_)
    assert amounts.fits(request_, free) == all(amount >= 0 for amount in rest.values())


@given(resource_amounts, resource_amounts)
def test_arguments_are_not_changed(a, b):
    before = (dict(a), dict(b))
    amounts.add(a, b)
    amounts.subtract(a, b)
    assert (a, b) == before


@pytest.mark.parametrize(
    ("name", "amount", "expected"),
    [
        ("cpu", 1500, "1.5 CPU"),
        ("cpu", 2000, "2 CPU"),
        ("cpu", 1, "0.001 CPU"),
        ("cpu", 10_000, "10 CPU"),
        ("memory", 2 * 2**30, "2 GiB memory"),
        ("memory", 1536 * 2**20, "1.5 GiB memory"),
        ("cpu", 1250, "1.25 CPU"),
        ("memory", 1280 * 2**20, "1.25 GiB memory"),
        ("memory", 2**28, "256 MiB memory"),
        ("memory", 12_800 * 2**20, "12.5 GiB memory"),
        ("memory", 232_244 * 2**20, "226.8 GiB memory"),
        ("memory", 100, "100 bytes memory"),
        ("memory", 0, "0 bytes memory"),
        ("pods", 1, "1 pod"),
        ("pods", 3, "3 pods"),
        ("nvidia.com/gpu", 1, "1 nvidia.com/gpu"),
        ("ephemeral-storage", 10 * 2**30, "10 GiB ephemeral-storage"),
    ],
)
def test_amounts_are_shown_as_people_write_them(name, amount, expected):
    assert amounts.show(name, amount) == expected


@pytest.mark.parametrize(
    ("name", "amount", "expected"),
    [
        ("cpu", 469_866, "469.9 CPU"),
        ("cpu", 10_000, "10 CPU"),
        ("cpu", 9_999, "9.999 CPU"),
        ("cpu", 167, "0.167 CPU"),
        ("memory", 2 * 2**30, "2 GiB memory"),
        ("nvidia.com/gpu", 12_345, "12345 nvidia.com/gpu"),
    ],
)
def test_what_was_reckoned_is_shown_as_exactly_as_it_matters(name, amount, expected):
    assert amounts.about(name, amount) == expected
