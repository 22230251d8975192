"""What the rules make of objects: what is refused, filled in, stored and changed, what nodes may say, and what bounds say (tests/golden/rules)."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from cluster.api import admission
from cluster.rules import intake, quotas, ranges
from cluster.rules.batch import job_policies
from cluster.rules.node import node_engines, node_rights
from cluster.rules.node.leases import STATE_DIRECTORY, other_state_directory
from cluster.rules.node.node_walls import NodeWall
from cluster.rules.pod import templates
from kube import resources
from kube.errors import Forbidden
from kube.meta import timestamp
from kube.resources import BATCH_JOBS, CONFIGMAPS, POD_GROUPS, PODS, PRIORITY_CLASSES
from proof.systems.system import PROJECT
from tests import builders
from tests.blocks import blocks
from tests.cluster.objects import as_yaml, changed, job, of_objects, of_values, parsed, pod
from tests.tables import cases

from .defaulted import CASES, seen
from .known import ClusterStub, Judge, admit

DEFAULTS = json.loads((PROJECT / "tests/golden/kubernetes/defaults.json").read_text())


@blocks("events", "groups", "jobs", "kinds", "metadata", "pods", "ranges", folder="rules")
def test_what_the_rules_make_of_objects(block, golden):
    golden(block, Judge().says)


@pytest.mark.parametrize("case", CASES)
def test_object_is_stored_as_a_kube_apiserver_was_seen_to_store_it(case):
    kind, obj = CASES[case]
    assert seen(admit(kind, obj).checked()) == DEFAULTS[case]


def codes(values):
    return {"action": "FailJob", "onExitCodes": {"operator": "In", "values": values}}


@cases("rules, field", {
    "exit codes": ([codes([*range(1, 257)])], "spec.podFailurePolicy.rules[0].onExitCodes.values"),
    "rules": ([codes([1])] * 21, "spec.podFailurePolicy.rules"),
})  # fmt: skip
def test_a_failure_policy_has_so_many_parts_at_most(rules, field):
    (cause,) = admit(BATCH_JOBS, job(podFailurePolicy={"rules": rules})).causes
    assert (cause.field, cause.reason) == (field, "FieldValueTooMany")


@given(st.sets(st.integers(0, 60)))
def test_an_index_text_is_read_as_the_set_that_it_describes(indexes):
    pieces = []
    for index in sorted(indexes):
        if pieces and pieces[-1][1] == index - 1:
            pieces[-1][1] = index
        else:
            pieces.append([index, index])
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in pieces)
    read = job_policies.read_indexes(text, 61)
    assert {i for first, until in read for i in range(first, until + 1)} == indexes
    assert job_policies.size(read) == len(indexes)


def test_a_pod_that_a_controller_made_can_be_labelled_and_is_not_filled_in():
    made = pod()
    for change in (changed(made, "metadata.labels", {"a": "b"}), changed(made, "spec.containers.0.image", "other")):
        assert admit(PODS, change, made).checked()["spec"] == change["spec"]


ANYWHERE = ("/data", "/dev/shm", "/dev/shm/x", "/devices", "/run", "/etc/x")
NOWHERE = ("/", "/dev", "/dev/null", "/proc/self/fd", "/sys/", "/data/../proc", "proc", "//proc", "/dev/shm/../null")


@pytest.mark.parametrize("path", [*ANYWHERE, *NOWHERE])
@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "in another cluster"])
def test_where_a_volume_may_be(path, elsewhere):
    mounted = builders.container(volumeMounts=[{"name": "v", "mountPath": path}])
    template = {"spec": {"containers": [mounted], "volumes": [{"name": "v", "emptyDir": {}}]}}
    found = [cause.field for cause in templates.check(template, "", elsewhere=elsewhere)]
    is_allowed = path in ANYWHERE or elsewhere
    assert found == ([] if is_allowed else [".spec.containers[0].volumeMounts[0].mountPath"])


QUEUES = [
    builders.queue(name, state, parent=parent)
    for name, state, parent in (
        ("default", "Open", "root"), ("closed", "Closed", "root"), ("closing", "Closing", "root"), ("root", "Open", ""),
        ("team", "Open", "root"), ("sub", "Open", "team"), ("new", "", "root"),
    )
]  # fmt: skip


@pytest.mark.parametrize("each", QUEUES, ids=lambda each: each["metadata"]["name"])
def test_a_queue_says_in_a_few_words_that_it_takes_no_work_exactly_where_it_refuses(each):
    name = each["metadata"]["name"]
    has_children = name in {one["spec"]["parent"] for one in QUEUES}
    message = intake.refusal(name, intake.queue_state(each), has_children=has_children)
    assert bool(message) == bool(admit(POD_GROUPS, builders.pod_group(queue=name), None, *QUEUES).causes)


def test_only_one_class_is_the_default_and_those_of_the_system_stay():
    first, second = (builders.of(PRIORITY_CLASSES, name, {"value": 1, "globalDefault": True}) for name in ("a", "b"))
    with pytest.raises(Forbidden, match=r"PriorityClass a is already .* default\. Only one default can exist"):
        admit(PRIORITY_CLASSES, second, None, first).checked()
    assert admit(PRIORITY_CLASSES, changed(first, "description", "x"), first, first).causes == ()
    for name in ("system-cluster-critical", "system-node-critical"):
        with pytest.raises(Forbidden, match="may not be deleted"):
            admission.release(PRIORITY_CLASSES, builders.of(PRIORITY_CLASSES, name, {"value": 1}), ClusterStub())


VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "impersonate")


def rights():
    """What a node may and on which condition, as Kubernetes documents Node Authorization and NodeRestriction."""
    targets = [*(kind.id for kind in resources.ALL), "users", "audit", "roles"]
    targets += [f"{kind.id}/{part.name}" for kind in resources.ALL for part in kind.parts]
    allowed = [(target, verb, node_rights.condition(verb, target)) for target in targets for verb in VERBS]
    return [f"{verb} {target}: {condition.name}" for target, verb, condition in allowed if condition is not None]


KEYS = st.sampled_from(["configMap", "secret", "secretRef", "imagePullSecrets", "name", "x"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=12,
)


@given(JSON)
def test_any_spec_can_be_looked_through(spec):
    assert all(isinstance(name, str) for _, name in node_rights.mentions({"spec": spec}))


def node(labels=None, annotations=None, spec=None):
    return {"metadata": {"labels": labels or {}, "annotations": annotations or {}}, "spec": spec or {}}


def elsewhere(directory, renewed):
    """Where an agent other than the one here lives, by a lease: its place, if it has one, and how long ago it was renewed."""
    annotations = {} if directory is None else {STATE_DIRECTORY: directory}
    renewed = timestamp(NOW - renewed * 1000) if isinstance(renewed, int) else renewed
    return other_state_directory(
        {"metadata": {"annotations": annotations}, "spec": {"renewTime": renewed}}, "host:/here", NOW
    )


def engine(says):
    return says and node_engines.of("here", {node_engines.ANNOTATION: says})


def refusal(line):
    """Of a quota, what is used of it, and an object that is new."""
    quota, used, new = line.split(" | ")
    kind, obj = parsed(new)
    counted, used = [quotas.read(parsed(quota)[1])], {"x": yaml.safe_load(used)}
    return [as_yaml(quotas.refusal(counted, used, kind, obj, quotas.usage(kind, obj)))]


NOW = 1_800_000_000_000
OF_NODES = {
    "what a pod mentions is found wherever it stands": lambda spec: sorted(
        map(list, node_rights.mentions({"spec": spec}))
    ),
    "only the plain selection of its pods is a node's": lambda fields: node_rights.selects_own("n", fields),
    "a node's own objects have its name and place": lambda *about: node_rights.is_own("n", *about),
    "what a node may not say of itself": lambda old, new: node_rights.refusal("n", old and node(**old), node(**new)),
    "about which pod an event is": lambda event: [*node_rights.about(event)],
    "another agent lives while its lease is fresh": elsewhere,
    "a start says what runs, and what is new about it": lambda now, old: node_engines.startup_message(
        engine(now), engine(old)
    ),
    "engines are written as they are read": node_engines.written,
    "arguments alone are a command without an image": node_engines.has_command,
    "walls are told in sentences": lambda says: NodeWall("a", says).sentence,
}
SAYS = {
    "a node may do nothing else": lambda line: rights(),
    "which ranges may refuse": of_objects(lambda limits: ranges.bounds(limits[1])),
    "what is used": of_objects(lambda new: quotas.usage(*new)),
    "which pods count": of_objects(lambda quota, pod: quotas.read(quota[1]).counts_object(*pod)),
    "when a quota refuses": refusal,
}


@blocks("nodes", "quotas", folder="rules")
def test_what_is_said_of_nodes_and_by_bounds(block, golden):
    golden(block, SAYS.get(block.title) or of_values(OF_NODES[block.title]))


def test_quotas_with_scopes_count_nothing_but_pods():
    scoped = {"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "1"}, "scopes": ["Terminating"]}}
    assert not quotas.read(scoped).counts(CONFIGMAPS)
