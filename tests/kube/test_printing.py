"""The tables of kubectl: `rows.txt` of `tests/golden/kube` has rows of objects, `cells.txt` single cells, `paths.txt` paths."""

import contextlib
from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube import meta, printing, resources
from kube.printing import ages, paths
from kube.printing.cells import CELLS, PrintedRow
from kube.resources import COMMANDS, JOBS, NAMESPACES, POD_GROUPS, PODS, QUEUES, Column
from tests.kube.samples import SCALARS, json_values
from tests.tables import cases, parts

NOW = meta.parse_time("2026-03-01T12:00:00Z")
BORN = "2026-03-01T11:57:00Z"  # three minutes before NOW
PRINTED = [resource for resource in resources.served() if resource.stored]


@parts("kube/rows")
def test_a_row_is_that_of_kubectl(part):
    """The title of a part has a kind and columns of it; a pod has one container, if it does not say so."""
    plural, _, columns = part.title.partition(": ")
    resource = next(
        each for each in resources.BUILT_IN if each.plural == plural and not each.group.endswith("volcano.sh")
    )
    titles = [column["name"] for column in printing.columns(resource)]

    def row(text):
        obj = {"metadata": {}, "spec": {}, **yaml.safe_load(text)}
        if resource is PODS:
            obj["spec"] = {"containers": [{}], **obj["spec"]}
        found = dict(zip(titles, printing.row(resource, obj, NOW), strict=True))
        return [found[title] for title in columns.split(", ")]

    part.check(row)


def cell(name, obj):
    return CELLS[name](PrintedRow(obj, NOW))


def custom(**column):
    names = {"plural": "widgets", "group": "example.org", "kind": "Widget"}
    return replace(QUEUES, **names, schema={}, columns=(Column("X", **column),))


def custom_cell(text):
    kind, value = text.split(" ", 1)
    return printing.row(custom(path=".x", type=kind), {"x": yaml.safe_load(value)}, NOW)


@parts("kube/cells")
def test_a_cell_is_that_of_kubectl(part):
    def named_cell(text):
        name, obj = text.split(" ", 1)
        return cell(name, yaml.safe_load(obj))

    def selector(text):
        found = {cell("job_selector", {"spec": {"selector": yaml.safe_load(text)}})}
        (found,) = found | {cell("network_policy_pod_selector", {"spec": {"podSelector": yaml.safe_load(text)}})}
        return found

    functions = {
        "cells": named_cell, "label selectors": selector, "values of custom columns": custom_cell,
        "durations in milliseconds": lambda text: printing.human_duration(int(text)),
        "ages": lambda text: ages.age(yaml.safe_load(text), NOW),
    }  # fmt: skip
    part.check(functions[part.title])


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
ODD = json_values(KEYS, SCALARS | st.floats() | st.sampled_from([BORN, "True"]), 20)


@given(ODD | st.sampled_from([{}, []]), st.sampled_from(PRINTED), st.integers())
def test_any_object_has_a_row_and_every_duration_is_short(obj, resource, ms):
    assert len(printing.row(resource, obj, NOW)) == len(resource.columns)
    printing.completed(resource, obj)
    for name in CELLS:
        cell(name, obj)
    assert 0 < len(printing.human_duration(min(ms, 10**13))) <= len("<invalid>")


def named(name, born=None, **fields):
    return {"metadata": {"name": name, "creationTimestamp": born}, **fields}


TRAINING = {"state": {"phase": "Running"}, "minAvailable": 3, "running": 2}
GROUP = named("g", spec={"minMember": 2, "queue": "q"}, status={"phase": "Inqueue"})


@pytest.mark.shows("queues 1.1/columns", "groups 3.1/columns", "coscheduling 4/kubectl")
@cases("resource, obj, row", {
    "job | 0/columns": (JOBS, named("tf", BORN, spec={"queue": "research"}, status=TRAINING), ["tf", "Running", 3, 2, "3m", "research"]),
    "job without status": (JOBS, named("new"), ["new", None, None, None, None, None]),
    "pod group": (POD_GROUPS, GROUP, ["g", "Inqueue", 2, None, None, "q"]),
    "queue": (QUEUES, named("q", spec={"parent": "root"}), ["q", "root"]),
    "command": (COMMANDS, named("c", BORN), ["c", "3m"]),
    "namespace": (NAMESPACES, named("a", BORN), ["a", "", "3m"]),
    "the age of nobody knows": (NAMESPACES, named("a"), ["a", "", "<unknown>"]),
    "a kind without columns": (replace(QUEUES, group="example.org", columns=()), named("a", BORN), ["a", BORN]),
})  # fmt: skip
def test_volcano_kinds(resource, obj, row):
    assert printing.row(resource, obj, NOW) == row


def test_columns_say_what_they_are_and_one_that_nobody_can_print_is_refused():
    types = {kind: {each["name"].lower(): each["type"] for each in printing.columns(kind)} for kind in (PODS, JOBS)}
    assert (types[PODS]["age"], types[JOBS]["age"]) == ("string", "date"), "texts of built-in kinds, dates of Volcano's"
    (described,) = printing.columns(custom(path=".spec.x", description="The x.", format="int32", priority=1))
    assert described == {"name": "X", "type": "string", "format": "int32", "description": "The x.", "priority": 1}
    (plain,) = printing.columns(custom(path=".spec.x"))
    assert plain["description"] == "Custom resource definition column (in JSONPath format): .spec.x"
    columns = printing.columns(replace(QUEUES, group="example.org", columns=()))
    assert [(column["name"], column["type"]) for column in columns] == [("Name", "string"), ("Created At", "date")]
    conditions = {"x": [{"type": "Old", "status": "False"}, {"type": "Ready", "status": "True"}]}
    cells = {'[?(@.type=="Ready")].status': "True", "[*].type": "Old", "[7].type": None, ".none": None}
    for path, found in cells.items():
        assert printing.row(custom(path=f".x{path}"), conditions, NOW) == [found], path
    with pytest.raises(LookupError):
        printing.check(custom(cell="no_such_cell"))
    with pytest.raises(printing.PathError):
        printing.check(custom(path=".spec["))


def test_pods_that_have_ended_are_completed():
    for phase, reason in {"Succeeded": "Succeeded", "Failed": "Failed", "Running": None, "": None}.items():
        conditions = printing.completed(PODS, {"status": {"phase": phase}})
        found = [(each["type"], each["status"], each["reason"]) for each in conditions]
        assert found == ([("Completed", "True", reason)] if reason else [])
        assert printing.completed(QUEUES, {"status": {"phase": phase}}) == []


READY = {"type": "Ready", "status": "True", "count": 2, "on": True}
OBJECT = {
    "spec": {"name": "a", "ports": [80, 443, 8080], "empty": [], "none": None},
    "metadata": {"labels": {"example.org/team": "red", "app": "web"}},
    "status": {"conditions": [READY, {"type": "Old", "status": "False", "count": 1}]},
}


@parts("kube/paths")
def test_values_at_a_path(part):
    part.check(lambda path: paths.parse(path)(OBJECT))


def test_what_is_no_path_and_what_does_not_suit_the_object_is_a_path_error():
    for path in (
        *[".spec[", ".spec[x]", ".spec[?(@.a=!1)]", ".spec[?(a==1)]", "[]", ".ports[::0]"],
        ".a b",
        "." + "a" * 5000,
    ):
        with pytest.raises(paths.PathError):
            paths.parse(path)
    for path, value in (
        (".spec.ports[3]", OBJECT), (".spec.name[0]", OBJECT), (".spec[?(@.a==1)]", OBJECT),
        ('.status.conditions[?(@.count=="1")]', OBJECT), ("[*][*]", [[0] * 200] * 200), ("..[*]", [[[0]] * 200] * 200),
    ):  # fmt: skip
        with pytest.raises(paths.PathError):
            paths.parse(path)(value)


PIECES = [*".ab*[]?()@='\"x0123-:,<> \\", "..", "[0]", "[*]", "[?(@.a==1)]", ".a", "[?(@.b)]"]
pieces = st.lists(st.sampled_from(PIECES), max_size=8)


@given(pieces.map("".join), json_values(st.sampled_from("abx")))
def test_no_path_and_no_object_raises_anything_else(text, value):
    with contextlib.suppress(paths.PathError):
        paths.parse("." + text)(value)
