"""Claims' files: whose they are, how long they stay, and what becomes of those of an earlier version."""

from __future__ import annotations

import os
import time

import pytest

from cluster.store import Create, Delete, store
from kube.kinds.core import Pod
from kube.meta import ObjectMeta
from kube.resources import CLAIMS, NAMESPACES
from node.agent import claims
from node.agent.cluster import Dismissed
from node.agent.environment import Claim, ConfigError
from node.paths import Layout
from node.shim.shim import read_json
from tests.node.driving import mount
from tests.tables import cases

HOUR = 3600.0


MOUNTED = {"volumeMounts": [mount("v", "/v")]}


VOLUMES = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]


@pytest.fixture
def begun(machine):
    for name in ("kube-system", "d"):
        store.write(Create(NAMESPACES, {"metadata": {"name": name}}))
    return machine.begin()


def run(node, script, name="p", **spec):
    return node.shell(script, name, MOUNTED, volumes=VOLUMES, **spec)


def ended(node, script, name="p"):
    """Run a pod with the claim to its end; return what it said."""
    return node.ran(script, name, main=MOUNTED, volumes=VOLUMES)


def delete_claim():
    store.write(Delete(CLAIMS, "d", "c"))


def delete_namespace():
    delete_claim()  # as the controller of namespaces does before a namespace goes
    store.write(Delete(NAMESPACES, "", "d"), Create(NAMESPACES, {"metadata": {"name": "d"}}))


def age(node, *uids):
    """Let the directories of claims be no longer fresh."""
    for uid in uids:
        os.utime(node.data / "node" / "claims" / uid / "claim.json", (time.time() - HOUR,) * 2)


def clean(node):
    node.agent.clean_at = 0
    node.agent.work()


class Cluster:
    """A cluster that has some claims."""

    def __init__(self, *found, name="one", made=0.0, answers=None) -> None:
        self.found, self.name, self.made, self.answers = found, name, made, answers

    def claim(self, namespace, name):
        return Claim(self.found[0], self.made) if self.found else None

    def existing_claims(self, uids):
        if self.answers is not None:
            raise self.answers
        return set(self.found) & set(uids)

    def cluster(self):
        return self.name


POD = Pod(metadata=ObjectMeta(name="p", namespace="d", uid="pod"))


@pytest.fixture
def layout(tmp_path):
    found = Layout(tmp_path)
    found.pod("pod").mkdir(parents=True)
    return found


def given(layout, cluster, old=True):
    """Give a pod the claim of a cluster, with a file in it."""
    claims.begin(layout)
    files = claims.directory(layout, POD, "c", cluster)
    files.mkdir(exist_ok=True)
    (files / "f").touch()
    if old:
        os.utime(files.parent / "claim.json", (time.time() - HOUR,) * 2)
    return files


class TestUpdate:
    """Earlier versions had claims' directories by namespace and name."""

    @pytest.fixture
    def old(self, layout):
        folder = layout.named_claims / "d" / "c"
        folder.mkdir(parents=True)
        return folder

    @cases("made, adopted", {"older than its directory": (-HOUR, True), "made after the update": (HOUR, False)})
    def test_whose_an_earlier_directory_is_which_is_taken_once(self, layout, old, made, adopted):
        (old / "kept").touch()
        files = given(layout, Cluster("u", made=time.time() + made))
        assert (files / "kept").exists() == adopted
        assert (old / "kept").exists(), "as what it was, or as a link for pods that run"
        (layout.pod("pod") / "_claims.json").unlink()
        assert not adopted or not (given(layout, Cluster("w", made=time.time() - HOUR)) / "kept").exists()

    @cases(
        "updated_first",
        {"what is older than a claim is of one before it": False, "a pod still writes after the update": True},
    )
    def test_what_is_of_an_earlier_claim_is_not_the_new_ones(self, layout, old, updated_first):
        file = old / "of-an-earlier-claim"
        if updated_first:
            claims.begin(layout)
        else:
            file.touch()
        time.sleep(0.02)
        made = time.time()
        time.sleep(0.02)
        if updated_first:
            file.touch()
        assert not (given(layout, Cluster("u", made=made)) / file.name).exists()

    def test_an_agent_of_this_version_finds_what_one_before_it_left(self, begun):
        uid = begun.claim()
        begun.crash()
        layout = Layout(begun.data)
        layout.claims.rmdir()
        (layout.named_claims / "d" / "c").mkdir(parents=True)
        (layout.named_claims / "d" / "c" / "kept").write_text("before")
        begun.again()
        assert ended(begun, "cat $VOLUME_V/kept") == ["before"]
        assert (begun.files(uid) / "kept").exists()


class TestClaims:
    @pytest.mark.parametrize("delete", [delete_claim, delete_namespace], ids=["claim", "namespace"])
    @pytest.mark.parametrize("restarts", [False, True], ids=["", "agent starts again"])
    def test_a_claim_of_the_same_name_is_another_ones_and_empty(self, begun, delete, restarts):
        first = begun.claim()
        assert ended(begun, "echo of-sam > $VOLUME_V/secret", "sam") == []
        assert ended(begun, "cat $VOLUME_V/secret", "sam-again") == ["of-sam"]
        delete()
        if restarts:
            begun.crash()
            begun.again()
        second = begun.claim()
        assert ended(begun, "ls -A $VOLUME_V", "sa2") == []
        age(begun, first, second)
        begun.until(lambda: not begun.agent.pods)
        clean(begun)
        assert not begun.files(first).exists()
        assert begun.files(second).exists()
        begun.agent.storage.look()
        assert list(begun.agent.layout.trash.iterdir()) == []

    @pytest.mark.parametrize("restarts", [False, True], ids=["", "agent starts again"])
    def test_files_of_a_deleted_claim_stay_as_long_as_a_pod_that_has_them(self, begun, restarts):
        first = begun.claim()
        wait = f"until [ -e {begun.out}/go ]; do sleep 0.01; done"
        script = f"cat $VOLUME_V/f && exit 0; echo mine > $VOLUME_V/f; {wait}; exit 1"
        uid = run(begun, script, restartPolicy="OnFailure")
        begun.until(lambda: (begun.files(first) / "f").exists())
        delete_claim()
        second = begun.claim()
        if restarts:
            begun.crash()
            begun.again()
        age(begun, first)
        clean(begun)
        assert (begun.files(first) / "f").exists()
        begun.let_go()
        begun.until_phase("Succeeded")
        assert begun.status()["containerStatuses"][0]["restartCount"] == 1, "it began again with the files that it had"
        assert not begun.files(second).exists()
        assert read_json(str(begun.agent.layout.pod(uid) / "_claims.json")) == {"c": first}
        begun.until(lambda: not begun.agent.pods)
        clean(begun)
        assert not begun.files(first).exists()

    def test_a_pod_waits_for_its_claim(self, begun):
        run(begun, "echo here > $VOLUME_V/f")
        begun.until_waits("CreateContainerConfigError", 'persistentvolumeclaim "c" not found')
        uid = begun.claim()
        begun.until_phase("Succeeded")
        assert (begun.files(uid) / "f").read_text() == "here\n"

    @cases("cluster, pods, old, stays", {
        "gone": (Cluster(), (), True, False),
        "there": (Cluster("u"), (), True, True),
        "gone, and a pod has it": (Cluster(), ("pod",), True, True),
        "gone, and another pod runs": (Cluster(), ("other",), True, False),
        "made a moment ago": (Cluster(), (), False, True),
        "another cluster's": (Cluster(name="two"), (), True, True),
        "a cluster that cannot be told from others": (Cluster(name=""), (), True, True),
    })  # fmt: skip
    def test_when_a_claims_files_go(self, layout, cluster, pods, old, stays):
        files = given(layout, Cluster("u"), old)
        claims.clean(layout, pods, cluster)
        assert files.exists() == stays

    @pytest.mark.parametrize("error", [OSError(), KeyError("existing"), Dismissed()], ids=repr)
    def test_nothing_goes_while_the_cluster_does_not_answer(self, layout, error):
        files = given(layout, Cluster("u"))
        with pytest.raises(type(error)):
            claims.clean(layout, (), Cluster(answers=error))
        assert files.exists()

    def test_a_directory_that_no_agent_has_signed_stays_and_for_no_claim_one_is_made(self, layout):
        claims.begin(layout)
        (layout.claims / "u" / "files").mkdir(parents=True)
        claims.clean(layout, (), Cluster())
        with pytest.raises(ConfigError, match='persistentvolumeclaim "c" not found'):
            claims.directory(layout, POD, "c", Cluster())
        assert [each.name for each in layout.claims.iterdir()] == ["u"]
