"""The kinds and what some of them say: resources, HyperNodes, and pod groups with the room that is kept for them."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube import definitions, indexes, resources, schema
from kube.meta import now_text
from kube.resources import HYPER_NODES
from kube.volcano import reserved_room, topology
from kube.volcano.pod_groups import job_of
from kube.volcano.reserved_room import GroupReservation, Reservation
from tests.builders import of
from tests.tables import cases, parts

BATCH, FLOW, SCHEDULING = "batch.volcano.sh/v1alpha1", "flow.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"


@pytest.mark.shows("coscheduling 1/group and version", "scheduler 10.1/1")
@cases("resource, api_version, plural, kind, namespaced, has_status_path", {
    "jobs | 0/Job": (resources.JOBS, BATCH, "jobs", "Job", True, True),
    "cron jobs": (resources.CRON_JOBS, BATCH, "cronjobs", "CronJob", True, True),
    "flows": (resources.JOB_FLOWS, FLOW, "jobflows", "JobFlow", True, True),
    "templates": (resources.JOB_TEMPLATES, FLOW, "jobtemplates", "JobTemplate", True, True),
    "commands | 0/Command": (resources.COMMANDS, "bus.volcano.sh/v1alpha1", "commands", "Command", True, False),
    "queues | queues 1.1/Queue": (resources.QUEUES, SCHEDULING, "queues", "Queue", False, True),
    "pod groups | groups 3.1/PodGroup": (resources.POD_GROUPS, SCHEDULING, "podgroups", "PodGroup", True, False),
    "hyper nodes": (resources.HYPER_NODES, "topology.volcano.sh/v1alpha1", "hypernodes", "HyperNode", False, True),
})  # fmt: skip
def test_volcanos_kinds_are_called_as_by_volcano(resource, api_version, plural, kind, namespaced, has_status_path):
    assert (resource.api_version, resource.plural, resource.kind) == (api_version, plural, kind)
    assert (resource.namespaced, resource.status_subresource) == (namespaced, has_status_path)


@pytest.mark.parametrize("resource", resources.ALL, ids=lambda resource: resource.id)
def test_a_resource_is_found_and_its_columns_and_fields_are_what_the_kind_has(resource):
    assert resource.id == resource.plural + (f".{resource.group}" if resource.group else "")
    assert resources.by_id(resource.id) is resources.by_kind(resource.api_version, resource.kind) is resource
    assert resources.by_kind("v2", resource.kind) is None
    assert all(bool(column.path) != bool(column.cell) for column in resource.columns)
    assert len({column.name for column in resource.columns}) == len(resource.columns)
    read = [field for field in resource.fields if field not in resource.computed]
    for path in [*(column.path for column in resource.columns if column.path), *read]:
        obj = value = {}
        *above, last = path.split(".")
        for name in above:
            value = value.setdefault(name, {})
        value[last] = None
        assert schema.unknown_fields(obj, definitions.of(resource)) == []


# As the strategies of Kubernetes' registry have it; Volcano's kinds are custom ones, which all have one.
WITHOUT_GENERATION = {
    "configmaps", "endpoints", "events", "leases.coordination.k8s.io", "limitranges", "namespaces", "nodes",
    "persistentvolumeclaims", "resourcequotas", "secrets", "serviceaccounts", "services",
}  # fmt: skip


def test_some_kinds_have_what_others_have_not():
    assert {kind.id for kind in resources.ALL if not kind.has_generation} == WITHOUT_GENERATION
    assert [kind.id for kind in resources.ALL if kind.default_propagation == "Orphan"] == ["jobs.batch"]
    jobs = [resource.id for resource in resources.served() if resource.plural == "jobs"]
    assert jobs == ["jobs.batch", "jobs.batch.volcano.sh"], "without a group they are those of Kubernetes itself"
    with pytest.raises(KeyError):
        resources.by_id("deployments.apps")
    names = [(each.group, name) for each in resources.ALL for name in {each.plural, each.singular, *each.short_names}]
    assert len(names) == len(set(names))
    short = [name for resource in resources.ALL for name in resource.short_names]
    assert len(short) == len(set(short))
    assert not set(short) & {name for r in resources.ALL for name in (r.plural, r.singular)}


@parts("kube/indexes")
def test_a_stored_object_is_found_by(part):
    """Columns of its own, the texts of fields in a selector, and of a pod its trouble."""

    def found(text):
        if part.title == "trouble of pods":
            return indexes.pod({"metadata": {}, "status": yaml.safe_load(text)}).trouble
        name, text = text.split(" ", 1)
        resource = resources.by_id(name)
        if part.title == "indexes":
            return list(resource.index(yaml.safe_load(text)))
        field, text = text.split(" ", 1)
        assert field in resource.fields
        return resource.field_text(yaml.safe_load(text), field)

    part.check(found)


@given(st.sampled_from(resources.ALL), st.none() | st.integers() | st.text() | st.lists(st.none()))
def test_an_index_is_made_of_texts_whatever_the_parts_are(resource, part):
    index = resource.index({"metadata": part if isinstance(part, dict) else {}, "spec": part, "status": part})
    assert all(isinstance(value, str) for value in index)


PLACES = {"a0": ("a", "1"), "a1": ("a", "1"), "b0": ("b", "1"), "b1": ("b", "2")}
NODES = {name: {"rack": rack, "zone": zone} for name, (rack, zone) in PLACES.items()}


def hyper_node(name, tier, *members, **spec):
    return of(HYPER_NODES, name, tier=tier, members=list(members), **spec)


def named(*names, kind="Node"):
    return [{"type": kind, "selector": {"exactMatch": {"name": name}}} for name in names]


def below(*names):
    return named(*names, kind="HyperNode")


def labelled(**labels):
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": labels}}}


def come_to(*objects, nodes=NODES):
    read = [topology.read(each) for each in objects]
    return {each.name: each for each in topology.domains({one.name: one for one in read}, nodes)}


@pytest.mark.shows("scheduler 3.12/HyperNodes")
@parts("kube/topology", "members")
def test_a_hyper_node_has_the_nodes_that_its_members_name(part):
    part.check(lambda text: list(come_to(hyper_node("h", 1, *yaml.safe_load(text)))["h"].nodes))


def test_a_hyper_node_has_the_nodes_of_those_below_it():
    racks = hyper_node("rack-a", 1, labelled(rack="a"), tierName="rack"), hyper_node("rack-b", 1, labelled(rack="b"))
    other = hyper_node("other", 8, *named("a0"))  # nodes may be in HyperNodes of several tiers
    found = come_to(
        hyper_node("row", 2, *below("rack-a", "rack-b")), *racks, hyper_node("all", 7, *below("row")), other
    )
    assert list(found) == ["rack-a", "rack-b", "row", "all", "other"]
    assert found["all"].nodes == found["row"].nodes == tuple(sorted(NODES))
    assert found["row"].below == ("rack-a", "rack-b")
    assert found["rack-a"].tier_name == "rack"
    assert not any(each.problems for each in found.values())


@pytest.mark.shows("scheduler 3.12/HyperNodes")
@parts("kube/topology", "odd")
def test_what_is_odd_about_a_hyper_node_is_told(part):
    def odd(text):
        objects = (hyper_node(each["name"], each["tier"], *each["members"]) for each in yaml.safe_load(text))
        found = come_to(*objects)
        return [f"{name} {each.reason}: {each.message}" for name in found for each in found[name].problems]

    part.check(odd)


letters = st.sampled_from("hijkl")


@given(
    st.dictionaries(letters, st.tuples(st.integers(0, 3), st.sets(letters), st.sets(st.sampled_from(sorted(NODES)))))
)
def test_nodes_are_those_to_which_ways_of_falling_tiers_lead(written):
    """An oracle that walks downwards from each HyperNode, where the code goes upwards tier by tier."""

    def reached(name):
        tier, members, nodes = written[name]
        lower = (one for one in members if one in written and written[one][0] < tier)
        return set(nodes).union(*(reached(one) for one in lower))

    parts = {
        name: (tier, *below(*sorted(members)), *named(*sorted(nodes)))
        for name, (tier, members, nodes) in written.items()
    }
    found = come_to(*(hyper_node(name, *each) for name, each in parts.items()))
    assert {name: set(each.nodes) for name, each in found.items()} == {name: reached(name) for name in written}
    order = [(each.tier, each.name) for each in found.values()]
    assert order == sorted(order)


MADE = 1_767_225_600_000
UID = "0b0e3f0e-6f2a-4c3e-9d5c-2f3a4b5c6d7e"
PLACEMENTS = ((("n1", 2), ("n2", 4)), (), (("n2", 1),))
REQUESTS = ((("cpu", 2000), ("memory", 4 << 30)), (), (("cpu", 500), ("nvidia.com/gpu", 1)))
RESERVATION = Reservation(MADE, 3_600_000, MADE + 600_000, PLACEMENTS, REQUESTS)
TEXT = (
    "Kept for 1h0m0s at most; expected at 2026-01-01T00:10:00.000000Z; on n1: 2, n2: 4 / - / n2: 1; "
    "each cpu: 2, memory: 4Gi / - / cpu: 500m, nvidia.com/gpu: 1"
)


def group(data=None, *, status="True", annotations=None, queue="q"):
    message = reserved_room.data(RESERVATION) if data is None else data
    condition = {"type": reserved_room.DATA, "status": status, "message": message, "reason": "RoomKept"}
    metadata = {"namespace": "ns", "name": f"train-{UID}", "uid": "u", "annotations": annotations}
    conditions = [{"type": "Unschedulable", "status": "True"}, condition]
    return {"metadata": metadata, "spec": {"queue": queue}, "status": {"conditions": conditions}}


def read(made):
    return reserved_room.reserved_for("ns", f"train-{UID}", json.dumps(made).encode())


def test_what_is_kept_is_read_from_the_group_that_it_is_kept_for():
    found = read(group(annotations={"ui.volcano.sh/created-by": "alice"}))
    assert found == GroupReservation("ns", f"train-{UID}", "u", "q", "train", "alice", RESERVATION)
    assert reserved_room.message(RESERVATION) == TEXT
    assert found.on_nodes() == {
        "n1": {"cpu": 4000, "memory": 8 << 30, "pods": 2},
        "n2": {"cpu": 8500, "memory": 16 << 30, "nvidia.com/gpu": 1, "pods": 5},
    }
    assert found.total() == {"cpu": 12_500, "memory": 24 << 30, "nvidia.com/gpu": 1, "pods": 7}
    released = {reserved_room.RELEASED: now_text(MADE - 1)}
    assert read(group(annotations=released)).reservation == RESERVATION, "after other room was given back"


@parts("kube/groups")
def test_what_a_group_says_is_read_and_what_it_does_not_say_is_not_made_up(part):
    def until(text):
        reservation = read(group(text)).reservation
        return f"{reserved_room.message(reservation)} = {reservation.until - MADE}"

    def on_nodes(text):
        found = read(group(text))
        return found and found.on_nodes()

    part.check({"jobs of groups": job_of, "until when": until, "rooms that are kept on nodes": on_nodes}[part.title])


def test_nothing_is_kept_where_nothing_can_be_read():
    given_back = group(annotations={reserved_room.RELEASED: now_text(MADE)})
    odd = [{**group(), "status": each} for each in ({}, {"conditions": "Reserved"})]
    assert [read(made) for made in (group(status="False"), given_back, *odd)] == [None] * 4
