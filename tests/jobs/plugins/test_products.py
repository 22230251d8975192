"""What plugins make for a job, against the real store: made, kept in step, deleted, and in somebody's way."""

import base64

import msgspec
import pytest
from cryptography.hazmat.primitives import serialization

from cluster.store import Create, Delete, Patch, store
from jobs.consumers import job_controller
from jobs.controller import plugin_objects, ssh_keys
from kube.resources import CONFIGMAPS, CREATOR_ANNOTATION, JOBS, NETWORK_POLICIES, POD_GROUPS, PODS, SECRETS, SERVICES
from tests.builders import container, of
from tests.jobs.control import Controller, job, messages, pods, state, task
from tests.tables import cases

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runner_mode")]
SVC_SSH = {"plugins": {"svc": [], "ssh": []}}
RAYS = {"tasks": [task("head", 1, container("head"))], "plugins": {"ray": []}}
MADE = {
    ("configmaps", "demo-svc"), ("services", "demo"), ("networkpolicies.networking.k8s.io", "demo"), ("secrets", "demo-ssh"),
}  # fmt: skip
ALL = "ConfigMap NetworkPolicy Secret Service"


@cases("spec, story", {
    "the status lists the plugins that make something | 5.1/marker + 1.5/controlledResources": (
        {"plugins": {"env": [], "svc": [], "hcclrank": []}}, "→ controlled plugin-env plugin-svc"),
    **{
        f"deleted by somebody, made again: {plural}": (SVC_SSH, f"→ products {ALL}\ndrop {plural} → products {ALL}")
        for plural in ("configmaps", "services", "networkpolicies", "secrets")
    },
    **{
        f"deleted at the end of a run: {phase} | 5.1/deleted + 5.3/delete + 5.4/delete + 2.2/10": (SVC_SSH, f"""
        admit, {end} → phase {phase}; products""")
        for phase, end in (
            ("Completed", "succeed"), ("Aborted", "command AbortJob"), ("Terminated", "command TerminateJob"),
        )
    },
    "of ray | 5.8/delete": (RAYS, "admit → products ConfigMap NetworkPolicy Service Service\nsucceed → phase Completed; products; kept 0"),
})  # fmt: skip
def test_story(tell, spec, story):
    tell(spec, story)


def there():
    """The objects of the kinds that plugins make, by kind and name; a namespace's own config map is nobody's."""
    found = [stored for kind in plugin_objects.RESOURCES.values() for stored in store.find(kind, namespace="default")]
    return {(each.resource, each.name): each.object for each in found if each.name != "kube-root-ca.crt"}


def begin(controller, *names, **spec):
    stored = [controller.submit(job(name, **SVC_SSH, **spec)) for name in names or ("demo",)]
    controller.admit()
    return stored[0]


def secret():
    data = store.get(SECRETS, "default", "demo-ssh").object["data"]
    return {name: base64.b64decode(text).decode() for name, text in data.items()}


def assert_settled():
    before = store.revision()
    Controller().settle()
    assert store.revision() == before


@pytest.mark.shows("5.1/made", "1.1/plugins", "5.3/ConfigMap", "5.4/Secret")
def test_products_are_made_in_the_transaction_of_the_pod_group_and_belong_to_the_job(controller, runner_mode):
    stored = begin(controller, annotations={CREATOR_ANNOTATION: "alice"})
    assert set(there()) == MADE
    group = store.find(POD_GROUPS)[0].object["metadata"]
    for metadata in (obj["metadata"] for obj in there().values()):
        assert metadata["ownerReferences"] == group["ownerReferences"]
        assert metadata["ownerReferences"][0]["uid"] == stored.uid
        assert metadata["annotations"][CREATOR_ANNOTATION] == "alice"
        # In-place they are several requests, which may lie on both sides of a second.
        if runner_mode.name == "embedded":
            assert metadata["creationTimestamp"] == group["creationTimestamp"]
    assert_settled()


@pytest.mark.shows("5.3/update", "5.4/update", "5.4/config", "2.8/scale")
def test_config_map_and_ssh_configuration_follow_the_replicas_and_are_put_right_and_the_keys_stay(controller):
    begin(controller, minAvailable=1)
    keys = secret()
    controller.resize(3)
    data = store.get(CONFIGMAPS, "default", "demo-svc").object["data"]
    assert data["VC_MAIN_NUM"] == "3"
    assert data["main.host"].splitlines() == [f"demo-main-{n}.demo" for n in range(3)]
    now = secret()
    assert "Host demo-main-2 demo-main-2.demo\n  HostName demo-main-2.demo\n  Port 22\n" in now.pop("config")
    keys.pop("config")
    assert now == keys
    store.write(Patch(CONFIGMAPS, "default", "demo-svc", {"data": {"main.host": "x", "own": "1"}}))
    controller.settle()
    assert store.get(CONFIGMAPS, "default", "demo-svc").object["data"] == data
    assert_settled()


@pytest.mark.shows("10/Q-5", "2.3/plugins")
def test_restart_of_a_part_keeps_the_products_and_the_next_run_has_its_own(controller):
    controller.start(**SVC_SSH)
    before, key = {id_: each["metadata"]["uid"] for id_, each in there().items()}, secret()["id_rsa"]
    controller.issue("RestartPod")
    assert {id_: each["metadata"]["uid"] for id_, each in there().items()} == before
    controller.issue("RestartJob")
    assert (set(there()), secret()["id_rsa"] != key) == (MADE, True)


@cases("kind, name, spec, story", {
    "a Service is left as it is, and an event says so | 5.3/somebody else's + 3.7/PluginError": (SERVICES, "demo", SVC_SSH, """
        admit → pods main-0 main-1
        succeed → phase Completed; products"""),
    **{
        f"a {kind.kind} that pods need is waited for | 3.7/PluginError": (kind, name, SVC_SSH, f"""
        admit → pods; phase Pending; reason PluginBlocked; says {kind.kind} {name} has a name that a plugin of this job needs
        settle → reasons
        drop {kind.plural} → pods main-0 main-1; products {ALL}""")
        for kind, name in ((CONFIGMAPS, "demo-svc"), (SECRETS, "demo-ssh"))
    },
    "a policy is nothing to a job that wants none": (
        NETWORK_POLICIES, "demo", {"plugins": {"svc": ["--disable-network-policy"]}}, "admit → pods main-0 main-1"),
})  # fmt: skip
def test_what_is_somebody_elses(controller, tell, kind, name, spec, story):
    own = store.write(Create(kind, of(kind, name, {"data": {}})))[0]
    tell(spec, story)
    assert "drop" in story or store.get(kind, "default", name).revision == own.revision
    left = "Service demo was there before and is left as it is; delete it to have the plugin's."
    expected = {"Service": [left], "NetworkPolicy": []}
    assert kind.kind not in expected or messages("PluginError") == expected[kind.kind]


@pytest.mark.shows("2.1/leftover pods")
def test_products_of_an_earlier_job_of_the_name_are_waited_for(controller):
    begin(controller)
    for name in pods():
        store.write(Delete(PODS, "default", name, grace=0))
    store.write(Delete(JOBS, "default", "demo"), Delete(POD_GROUPS, "default", store.find(POD_GROUPS)[0].name))
    stored = begin(controller)
    assert pods() == []
    kinds = {kind.id: kind for kind in plugin_objects.RESOURCES.values()}
    for id_, name in MADE:
        store.write(Delete(kinds[id_], "default", name))
        controller.settle()
    owners = {each["metadata"]["ownerReferences"][0]["uid"] for each in there().values()}
    assert (set(there()), owners, len(pods())) == (MADE, {stored.uid}, 2)


def test_running_job_says_why_it_makes_no_more_pods(controller):
    controller.start(**SVC_SSH, minAvailable=1, replicas=1)
    store.write(Patch(CONFIGMAPS, "default", "demo-svc", {"metadata": {"ownerReferences": None}}))
    controller.resize(2)
    found = state()["state"]
    assert (found["phase"], found["reason"], pods()) == ("Running", "PluginBlocked", ["demo-main-0"])


def test_two_jobs_that_want_one_name_both_run(controller):
    controller.submit(job("rays", **RAYS))
    controller.submit(job("rays-head-svc", replicas=1, plugins={"svc": []}))
    controller.admit()
    assert pods() == ["rays-head-0", "rays-head-svc-main-0"]
    owner = store.get(SERVICES, "default", "rays-head-svc").object["metadata"]["ownerReferences"][0]
    assert owner["name"] == "rays"
    assert_settled()


@pytest.fixture
def pairs():
    """The pairs of keys that were made; those that are made are texts."""
    made = []
    before = ssh_keys.use(lambda: made.append(ssh_keys.KeyPair("private", "public")) or made[-1])
    yield made
    ssh_keys.use(before)


def test_keys_of_many_jobs_are_made_over_several_transactions(controller, pairs):
    store.write(*(Create(JOBS, job(f"demo-{n}", replicas=1, plugins={"ssh": []})) for n in range(25)))
    controller.step()
    assert len(pairs) == job_controller.ROOM // job_controller.KEY_COST
    controller.settle()
    assert len(pairs) == 25


@pytest.mark.shows("5.4/Secret")
def test_key_is_rsa_in_the_forms_that_ssh_reads():
    pair = ssh_keys.rsa_pair()
    assert pair.private.startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    key = serialization.load_pem_private_key(pair.private.encode(), password=None)
    form = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    assert key.key_size == 2048
    assert key.public_key().public_bytes(*form).decode() + "\n" == pair.public
    assert ssh_keys.rsa_pair() != pair


@pytest.mark.shows("5.4/--ssh-private-key, --ssh-public-key")
def test_a_pair_is_made_once_for_each_run_that_needs_one(controller, pairs):
    controller.submit(job("other", plugins={"svc": []}))
    controller.submit(job(plugins={"ssh": ["--ssh-private-key=mine", "--ssh-public-key=ours"]}))
    keys = secret()
    keys.pop("config")
    assert keys == {"id_rsa": "mine", "id_rsa.pub": "ours", "authorized_keys": "ours"}
    assert pairs == []
    controller.submit(job("another", plugins={"ssh": []}))
    controller.run()
    controller.become("Succeeded", code=0)
    assert len(pairs) == 1


def test_nothing_but_the_secret_holds_the_private_key(controller):
    begin(controller)
    key = secret()["id_rsa"].splitlines()[1]
    encoded = store.get(SECRETS, "default", "demo-ssh").object["data"]["id_rsa"]
    bodies = [change.body for change in store.changes(0) if change.resource != SECRETS.id]
    assert not [body for body in bodies if key.encode() in body or encoded.encode() in body]
    assert key not in repr(msgspec.to_builtins(controller.state.entries["default/demo"].observed.plugin_objects))
