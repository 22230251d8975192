from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube import printing, resources
from kube.printing import ages
from kube.resources import COMMANDS, JOBS, NAMESPACES, POD_GROUPS, PODS, QUEUES, Column
from tests.kube.printing.cases import BORN, DAY, HOUR, MINUTE, NOW, SECOND, ago, cells
from tests.tables import cases

PRINTED = [resource for resource in resources.served() if resource.stored]


@pytest.mark.parametrize("resource", PRINTED, ids=lambda resource: resource.id)
def test_every_column_is_described_and_the_name_has_its_format(resource):
    columns = printing.columns(resource)
    for column in columns:
        assert set(column) == {"name", "type", "format", "description", "priority"}
        assert column["type"] in {"string", "integer", "number", "boolean", "date"}
        assert column["description"], column["name"]
    assert [column["name"] for column in columns if column["format"] == "name"] == ["Name"]
    assert len(printing.row(resource, {}, NOW)) == len(columns), "an empty object has a cell for each"


KEYS = st.sampled_from(
    ["metadata", "spec", "status", "conditions", "type", "labels", "containers", "initContainers", "containerStatuses",
     "initContainerStatuses", "state", "terminated", "waiting", "running", "ports", "subsets", "addresses", "hard", "used",
     "selector", "matchLabels", "matchExpressions", "series", "data", "lastState", "exitCode", "signal", "restartCount"]
)  # fmt: skip
odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "x", BORN, "True"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@given(odd, st.sampled_from(PRINTED))
def test_any_object_has_a_row(obj, resource):
    assert len(printing.row(resource, obj, NOW)) == len(resource.columns)
    printing.completed(resource, obj)


def named(name, born=None, **parts):
    return {"metadata": {"name": name, "creationTimestamp": born}, **parts}


JOB = named(
    "tf", BORN, spec={"queue": "research"}, status={"state": {"phase": "Running"}, "minAvailable": 3, "running": 2}
)
GROUP = named("g", spec={"minMember": 2, "queue": "q"}, status={"phase": "Inqueue"})


@pytest.mark.shows("queues 1.1/columns", "groups 3.1/columns", "coscheduling 4/kubectl")
@cases("resource, obj, row", {
    "job | 0/columns": (JOBS, JOB, ["tf", "Running", 3, 2, "3m", "research"]),
    "job without status": (JOBS, named("new"), ["new", None, None, None, None, None]),
    "pod group": (POD_GROUPS, GROUP, ["g", "Inqueue", 2, None, None, "q"]),
    "queue": (QUEUES, named("q", spec={"parent": "root"}), ["q", "root"]),
    "command": (COMMANDS, named("c", BORN), ["c", "3m"]),
})  # fmt: skip
def test_volcano_kinds(resource, obj, row):
    assert printing.row(resource, obj, NOW) == row


def test_ages_are_texts_of_built_in_kinds_and_dates_of_volcanos():
    types = {kind: {each["name"].lower(): each["type"] for each in printing.columns(kind)} for kind in (PODS, JOBS)}
    assert (types[PODS]["age"], types[JOBS]["age"]) == ("string", "date")
    assert cells(NAMESPACES, named("a", BORN))["Age"] == "3m"
    assert cells(NAMESPACES, named("a"))["Age"] == "<unknown>"


def custom(**column):
    names = {"plural": "widgets", "group": "example.org", "kind": "Widget"}
    return replace(QUEUES, **names, schema={}, columns=(Column("X", **column),))


CONDITIONS = {"conditions": [{"type": "Old", "status": "False"}, {"type": "Ready", "status": "True"}]}


@cases("path, cell", {
    "condition": ('.x.conditions[?(@.type=="Ready")].status', "True"),
    "the first of many": (".x.conditions[*].type", "Old"),
    "out of the list": (".x.conditions[7].type", None),
    "absent": (".x.none", None),
})  # fmt: skip
def test_custom_paths(path, cell):
    assert printing.row(custom(path=path), {"x": CONDITIONS}, NOW) == [cell]


@cases("kind, value, cell", {
    "text": ("string", "a", "a"),
    "number as text": ("string", 3, "3"),
    "whole float as text": ("string", 2.0, "2"),
    "float as text": ("string", 2.5, "2.5"),
    "truth as text": ("string", True, "true"),
    "list as JSON": ("string", ["b", "a"], '["b","a"]'),
    "map as JSON": ("string", {"b": 1, "a": "<"}, '{"a":"\\u003c","b":1}'),
    "null": ("string", None, None),
    "integer": ("integer", 3, 3),
    "integer of a float": ("integer", 3.9, 3),
    "integer of a text": ("integer", "3", None),
    "integer of a truth": ("integer", True, None),
    "integer of infinity": ("integer", float("inf"), None),
    "number": ("number", 3, 3.0),
    "number of a text": ("number", "3", None),
    "boolean": ("boolean", False, False),
    "boolean of a text": ("boolean", "true", None),
    "date": ("date", BORN, "3m"),
    "empty date": ("date", "", "<unknown>"),
    "no date": ("date", "soon", "<invalid>"),
    "date of a number": ("date", 3, None),
    "another type": ("object", {}, None),
})  # fmt: skip
def test_custom_values(kind, value, cell):
    assert printing.row(custom(path=".spec.x", type=kind), {"spec": {"x": value}}, NOW) == [cell]


def test_custom_columns_say_what_they_are():
    (described,) = printing.columns(custom(path=".spec.x", description="The x.", format="int32", priority=1))
    assert described == {"name": "X", "type": "string", "format": "int32", "description": "The x.", "priority": 1}
    (plain,) = printing.columns(custom(path=".spec.x"))
    assert plain["description"] == "Custom resource definition column (in JSONPath format): .spec.x"


def test_a_kind_without_columns_shows_when_it_was_created():
    resource = replace(QUEUES, group="example.org", columns=())
    columns = [(column["name"], column["type"]) for column in printing.columns(resource)]
    assert columns == [("Name", "string"), ("Created At", "date")]
    assert printing.row(resource, named("a", BORN), NOW) == ["a", BORN]


def test_a_column_that_nobody_can_print_is_refused():
    with pytest.raises(LookupError):
        printing.check(custom(cell="no_such_cell"))
    with pytest.raises(printing.PathError):
        printing.check(custom(path=".spec["))


@pytest.mark.parametrize(
    ("phase", "reason"), [("Succeeded", "Succeeded"), ("Failed", "Failed"), ("Running", None), ("", None)]
)
def test_pods_that_have_ended_are_completed(phase, reason):
    conditions = printing.completed(PODS, {"status": {"phase": phase}})
    found = [(each["type"], each["status"], each["reason"]) for each in conditions]
    assert found == ([("Completed", "True", reason)] if reason else [])
    assert printing.completed(QUEUES, {"status": {"phase": phase}}) == []


YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-3 * SECOND, "<invalid>"), (-2 * SECOND, "<invalid>"), (-1999, "0s"), (-1, "0s"), (0, "0s"), (999, "0s"),
        (SECOND, "1s"), (2 * MINUTE - 1, "119s"), (2 * MINUTE, "2m"), (2 * MINUTE + SECOND, "2m1s"),
        (10 * MINUTE - 1, "9m59s"), (10 * MINUTE, "10m"), (10 * MINUTE + 5 * SECOND, "10m"), (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"), (3 * HOUR + MINUTE, "3h1m"), (8 * HOUR - 1, "7h59m"), (8 * HOUR, "8h"), (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"), (2 * DAY + HOUR, "2d1h"), (8 * DAY - 1, "7d23h"), (8 * DAY, "8d"), (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"), (2 * YEAR + DAY, "2y1d"), (8 * YEAR - 1, "7y364d"), (8 * YEAR, "8y"), (20 * YEAR, "20y"),
    ],
)  # fmt: skip
def test_human_duration(ms, text):
    assert printing.human_duration(ms) == text


@given(st.integers())
def test_every_duration_is_short(ms):
    assert 0 < len(printing.human_duration(min(ms, 200 * YEAR))) <= len("<invalid>")


@cases("value, text", {
    "a time": (ago(3 * MINUTE), "3m"),
    "a fraction of a second": ("2026-03-01T11:59:00.500000Z", "59s"),
    "another zone": ("2026-03-01T12:59:00+01:00", "60s"),
    "none": (None, "<unknown>"),
    "empty": ("", "<unknown>"),
    "no time": ("yesterday", "<unknown>"),
    "a number": (7, "<unknown>"),
})  # fmt: skip
def test_age(value, text):
    assert ages.age(value, NOW) == text
