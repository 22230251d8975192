"""Ways out of a pod that were ways out once: what a pod can change is never followed by the node."""

from __future__ import annotations

import os

import pytest

from cluster.store import Create, Patch, store
from kube.resources import CONFIGMAPS, CREATOR_ANNOTATION, JOBS, SECRETS
from node.agent import retention
from node.paths import Layout
from tests.node.driving import EMPTY, beginning, change, container, mount, person, put
from tests.tables import cases


@pytest.fixture(params=["root", "user", "none"])
def begun(request, machine):
    """A machine for each way in which containers get their volumes."""
    return beginning(machine, request.param)


class TestSubPath:
    def test_link_of_a_container_shows_nothing_of_the_cluster_to_another(self, begun):
        """Of an init container, or in a claim of a pod before."""
        begun.claim()
        empty, claim = [EMPTY], [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
        first = container(f"ln -s {begun.data} $VOLUME_V/out", mount("v", "/v"), name="init")
        main = container(f"cat $VOLUME_V/secret-key > {begun.out}/stolen", mount("v", subPath="out"))
        begun.submit("before", volumes=claim, containers=[first], until="Succeeded")
        begun.submit("of-claim", volumes=claim, containers=[main])
        begun.submit("of-init", volumes=empty, initContainers=[first], containers=[main])
        for name in ("of-claim", "of-init"):
            begun.until_waits("CreateContainerConfigError", "failed to prepare subPath for volumeMount", name=name)
            begun.until_waits("leads out of the volume, by the symbolic link", name=name)
        assert not (begun.out / "stolen").exists()

    def test_what_is_missing_is_not_made_through_a_link_nor_a_mount_point_in_another_volume(self, begun):
        inits = [container(f"ln -s {begun.out} $VOLUME_V/out", mount("v", "/v"), name="init")]
        main = container("true", mount("v", subPath="out/made"))
        begun.submit(volumes=[EMPTY], initContainers=inits, containers=[main])
        begun.until_waits("leads out of the volume")
        if begun.mounts != "none":
            main = container("true", mount("v", "/v"), mount("w", "/v/out/made"))
            begun.submit("q", volumes=[EMPTY, {**EMPTY, "name": "w"}], initContainers=inits, containers=[main])
            begun.until_waits("A volume cannot be mounted at /v/out/made", name="q")
        assert not (begun.out / "made").exists()

    def test_link_that_stays_in_the_volume_is_followed_and_one_key_can_be_mounted(self, begun):
        put(CONFIGMAPS, "c", data={"k": "v"})
        make = "mkdir $VOLUME_V/v1; echo one > $VOLUME_V/v1/file; ln -s v1 $VOLUME_V/latest"
        inits = [container(make, mount("v", "/v"), name="init")]
        mounts = [mount("v", subPath="latest"), mount("c", "/etc/k.conf", subPath="k")]
        main = container(f"cat $VOLUME_V/file $VOLUME_C > {begun.out}/seen", *mounts)
        volumes = [EMPTY, {"name": "c", "configMap": {"name": "c"}}]
        begun.submit(volumes=volumes, initContainers=inits, containers=[main], until="Succeeded")
        assert (begun.out / "seen").read_text() == "one\nv"


class TestHostPath:
    def exchanged(self, node, name, target, **fields):
        """Submit a pod whose first container makes a link of a directory; its second one reads through that."""
        path = node.out / name
        volumes = [{"name": "h", "hostPath": {"path": str(path), "type": "DirectoryOrCreate"}}]
        first = container(f"rmdir {path}; ln -s {target} {path}", mount("h", "/h"), name="init")
        main = container(f"cat $VOLUME_H/secret-key > {node.out}/stolen", mount("h"))
        node.submit(name, volumes=volumes, initContainers=[first], containers=[main], **fields)
        node.until_waits("failed to prepare volume for volumeMount", name=name)
        assert not (node.out / "stolen").exists()

    def test_exchanged_by_an_init_container_it_shows_nothing_of_the_cluster(self, begun, settings):
        settings.HOST_PATHS = ["/"]
        (begun.data / "pki").mkdir()
        (begun.data / "pki" / "secret-key").write_text("hush")
        for name, target in (("is", begun.data), ("below", begun.data / "pki"), ("contains", "/")):
            self.exchanged(begun, name, target)

    def test_nothing_outside_of_what_is_allowed_is_shown_or_made(self, begun, settings, tmp_path):
        (tmp_path / "secret-key").write_text("hush")
        settings.HOST_PATHS, sams = [str(begun.out)], {CREATOR_ANNOTATION: "sam"}
        self.exchanged(begun, "x", tmp_path, annotations=sams)
        for kind in ("DirectoryOrCreate", "FileOrCreate"):
            for name, folder in (("in", begun.out), ("out", tmp_path)):
                path = {"path": f"{folder}/{kind}", "type": kind}
                main, volumes = container("true", mount("h")), [{"name": "h", "hostPath": path}]
                begun.submit(f"{name}-{kind.lower()}", volumes=volumes, containers=[main], annotations=sams)
            begun.until_waits("does not lie below", name=f"out-{kind.lower()}")
            begun.until_phase("Succeeded", f"in-{kind.lower()}")
            assert ((begun.out / kind).exists(), (tmp_path / kind).exists()) == (True, False)


class TestWhoMayHaveAHostPath:
    def of(self, node, **fields):
        volumes = [{"name": "h", "hostPath": {"path": str(node.out)}}]
        node.submit(volumes=volumes, containers=[container("true", mount("h"))], **fields)

    @cases("role, namespace, allowed, phase", {
        "administrator of everything": ("administrator", "*", False, "Succeeded"),
        "administrator of the namespace": ("administrator", "d", False, "Pending"),
        "operator": ("operator", "*", False, "Pending"),
        "submitter": ("submitter", "d", False, "Pending"),
        "submitter, where the setting names it": ("submitter", "d", True, "Succeeded"),
    })  # fmt: skip
    def test_it_takes_an_administrator_of_everything(self, machine, settings, role, namespace, allowed, phase):
        settings.HOST_PATHS = [str(machine.out.parent)] if allowed else []
        person("pat", role, namespace)
        self.of(machine.begin(), annotations={CREATOR_ANNOTATION: "pat"})
        if phase == "Pending":
            machine.until_waits("hostPath", "ask an administrator to add the directory to VOLCANO_UI_HOST_PATHS")
        machine.until_phase(phase)

    def test_a_pod_is_its_jobs_and_one_that_names_nobody_or_whose_owner_is_gone_is_nobodys(self, machine):
        person("root", "administrator")
        person("sam", "submitter", "d")
        job = {"metadata": {"name": "j", "namespace": "d", "annotations": {CREATOR_ANNOTATION: "sam"}}, "spec": {}}
        uid = store.write(Create(JOBS, job))[0].uid
        machine.begin()
        claims = {"owner": uid, "annotations": {CREATOR_ANNOTATION: "root"}}
        pods = {"claims": claims, "bare": {}, "past": {"owner": "gone"}}
        for name, fields in pods.items():
            self.of(machine, name=name, **fields)
        for name in pods:
            machine.until_waits("hostPath", name=name)


def made_from(kind):
    """Make an object; return a volume that is made from it, and how it is changed."""
    if kind == "secret":
        put(SECRETS, "c", data={"key": "b25l"})
        return {"name": "c", "secret": {"secretName": "c"}}, Patch(SECRETS, "d", "c", {"data": {"key": "dHdv"}})
    put(CONFIGMAPS, "c", data={"key": "one"})
    source = {"configMap": {"name": "c"}}
    volume = {"name": "c", **({"projected": {"sources": [source]}} if kind == "projected" else source)}
    return volume, Patch(CONFIGMAPS, "d", "c", {"data": {"key": "two"}})


class TestPublishedFiles:
    @cases("kind, attack", {
        "draft": ("configMap", "ln -s {victim} $VOLUME_C/.key.new"),
        "key": ("secret", "ln -sf {victim} $VOLUME_C/key"),
        "version": ("projected", "ln -sfn {folder} $VOLUME_C/..data"),
        "no version": ("configMap", "rm -r $VOLUME_C/..data $VOLUME_C/..2*; ln -s {folder} $VOLUME_C/..data"),
        "in the version": ("secret", "rm $VOLUME_C/..2*/key; ln -s {victim} $VOLUME_C/..data/key"),
        "directory": ("projected", "rm $VOLUME_C/key; mkdir $VOLUME_C/key"),
        "FIFO": ("configMap", "rm $VOLUME_C/key; mkfifo $VOLUME_C/key"),
        "FIFO as version": ("secret", "rm $VOLUME_C/..data; mkfifo $VOLUME_C/..data"),
        "FIFO in the version": ("projected", "rm $VOLUME_C/..2*/key; mkfifo $VOLUME_C/..data/key"),
    })  # fmt: skip
    def test_update_writes_through_no_link_of_the_pod_which_can_write_nothing_there(self, begun, kind, attack):
        volume, update = made_from(kind)
        victim, folder = begun.out / "victim", begun.out / "folder"
        victim.write_text("untouched")
        folder.mkdir()
        tried = f"({attack.format(victim=victim, folder=folder)}) || true"
        script = f"{tried}; echo x > $VOLUME_C/new && touch {begun.out}/written; touch {begun.out}/ready; sleep 60"
        uid = begun.shell(script, main={"volumeMounts": [mount("c", "/cfg")]}, volumes=[volume])
        begun.until((begun.out / "ready").exists)
        assert not (begun.out / "written").exists()
        store.write(update)
        shown = begun.data / "node" / "pods" / uid / "_volumes" / "c" / "key"
        begun.until(lambda: shown.is_file() and not shown.samefile(victim) and shown.read_text() == "two")
        assert (victim.read_text(), [*folder.iterdir()]) == ("untouched", [])

    def test_all_files_change_at_once_and_old_ones_go(self, begun):
        put(CONFIGMAPS, "c", data={"a": "1", "b": "1", "gone": "1"})
        # A name goes after the files have changed, as a kubelet does it.
        script = """touch {0}/ready; while [ -e $VOLUME_C/gone ]; do :; done; cat $VOLUME_C/a $VOLUME_C/b > {0}/seen
            while [ -L $VOLUME_C/gone ]; do :; done; ls -A $VOLUME_C > {0}/names"""
        volume = {"name": "c", "configMap": {"name": "c"}}
        begun.submit(volumes=[volume], containers=[container(script.format(begun.out), mount("c", "/cfg"))])
        begun.until((begun.out / "ready").exists)
        change(CONFIGMAPS, "c", data={"a": "2", "b": "2", "gone": None})
        begun.until_phase("Succeeded")
        assert (begun.out / "seen").read_text() == "22"
        names = (begun.out / "names").read_text().split()
        assert [one for one in names if not one.startswith("..2")] == ["..data", "a", "b"]


def test_fifos_where_the_node_looks_hold_nobody(begun):
    """Who opens a FIFO waits for its other end: the node opens none that a pod has made."""
    limited = {"resources": {"limits": {"ephemeral-storage": "1Gi"}}}
    first = container("mkfifo $VOLUME_V/pipe $TMPDIR/pipe pipe", mount("v", "/v"), name="init", **limited)
    main = container("test -p $VOLUME_V; sleep 600", mount("v", subPath="pipe"), **limited)
    volumes = [{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}]
    begun.submit(volumes=volumes, initContainers=[first], containers=[main], until="Running")
    begun.agent.storage.look()
    begun.shell("true", "other", until="Succeeded")
    begun.remove()
    retention.clean(begun.agent.layout, set(), set(), days=0, most_bytes=0)


def test_removing_a_pod_s_files_and_writing_its_log_follow_no_link(tmp_path, attempts):
    layout, victim = Layout(tmp_path), tmp_path / "victim"
    layout.pods.mkdir(parents=True)
    (victim / "_work").mkdir(parents=True)
    (victim / "_work" / "file").write_text("untouched")
    (layout.pods / "uid").symlink_to(victim)
    for each in (layout.pods / "uid", victim):
        os.utime(each, (0, 0), follow_symlinks=False)
    retention.clean(layout, set(), set(), days=0, most_bytes=0)
    directory = attempts.directory()
    (directory / "log.000000000000000").symlink_to(victim / "_work" / "file")
    attempts.shell("echo out", directory=directory)
    attempts.until_gone(attempts.shim(directory))
    assert (victim / "_work" / "file").read_text() == "untouched"
