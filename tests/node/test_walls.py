"""Ways out of a pod that were ways out once: what a pod can change is never followed by the node."""

from __future__ import annotations

import subprocess

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
    @pytest.mark.parametrize("kind", ["emptyDir", "persistentVolumeClaim"])
    def test_link_of_a_container_shows_nothing_of_the_cluster_to_another(self, begun, kind):
        """Of an init container, or in a claim of a pod before."""
        volumes = [{"name": "v", kind: {} if kind == "emptyDir" else {"claimName": "c"}}]
        begun.claim()
        first = container(f"ln -s {begun.data} $VOLUME_V/out", mount("v", "/v"), name="init")
        main = container(f"cat $VOLUME_V/secret-key > {begun.out}/stolen", mount("v", subPath="out"))
        inits = [first] if kind == "emptyDir" else []
        if not inits:
            begun.submit("before", volumes=volumes, containers=[first])
            begun.until_phase("Succeeded", "before")
        begun.submit(volumes=volumes, initContainers=inits, containers=[main])
        begun.until_waits("CreateContainerConfigError", "failed to prepare subPath for volumeMount")
        begun.until_waits("leads out of the volume, by the symbolic link")
        assert not (begun.out / "stolen").exists()

    def test_missing_directories_are_not_made_through_a_link(self, begun):
        inits = [container(f"ln -s {begun.out} $VOLUME_V/out", mount("v", "/v"), name="init")]
        begun.submit(
            volumes=[EMPTY], initContainers=inits, containers=[container("true", mount("v", subPath="out/made"))]
        )
        begun.until_waits("leads out of the volume")
        assert not (begun.out / "made").exists()

    def test_link_that_stays_in_the_volume_is_followed_and_one_key_can_be_mounted(self, begun):
        put(CONFIGMAPS, "c", data={"k": "v"})
        make = "mkdir $VOLUME_V/v1; echo one > $VOLUME_V/v1/file; ln -s v1 $VOLUME_V/latest"
        inits = [container(make, mount("v", "/v"), name="init")]
        mounts = [mount("v", subPath="latest"), mount("c", "/etc/k.conf", subPath="k")]
        main = container(f"cat $VOLUME_V/file $VOLUME_C > {begun.out}/seen", *mounts)
        volumes = [EMPTY, {"name": "c", "configMap": {"name": "c"}}]
        begun.submit(volumes=volumes, initContainers=inits, containers=[main])
        begun.until_phase("Succeeded")
        assert (begun.out / "seen").read_text() == "one\nv"


class TestMountPoints:
    def test_none_is_made_through_a_link_in_another_volume(self, mounted):
        inits = [container(f"ln -s {mounted.out} $VOLUME_V/out", mount("v", "/v"), name="init")]
        main = container("true", mount("v", "/v"), mount("w", "/v/out/made"))
        mounted.submit(volumes=[EMPTY, {**EMPTY, "name": "w"}], initContainers=inits, containers=[main])
        mounted.until_waits("A volume cannot be mounted at /v/out/made")
        assert not (mounted.out / "made").exists()

    def test_none_is_made_through_a_link_in_a_directory_of_the_machine(self, mounted):
        (mounted.out / "elsewhere").mkdir()
        (mounted.out / "link").symlink_to("elsewhere")
        mounted.submit(volumes=[EMPTY], containers=[container("true", mount("v", f"{mounted.out}/link/made"))])
        mounted.until_waits("leads through the symbolic link")
        assert list((mounted.out / "elsewhere").iterdir()) == []


class TestHostPath:
    def exchanged(self, node, target, **fields):
        """Submit a pod whose first container makes a link of a directory; its second one reads through that."""
        path = node.out / "x"
        node.submit(
            volumes=[{"name": "h", "hostPath": {"path": str(path), "type": "DirectoryOrCreate"}}],
            initContainers=[container(f"rmdir {path}; ln -s {target} {path}", mount("h", "/h"), name="init")],
            containers=[container(f"cat $VOLUME_H/secret-key > {node.out}/stolen", mount("h"))],
            **fields,
        )
        node.until_waits("failed to prepare volume for volumeMount")
        assert not (node.out / "stolen").exists()

    @cases("target", {"is": "{data}", "lies below": "{data}/pki", "contains": "/"})
    def test_exchanged_by_an_init_container_it_shows_nothing_of_the_cluster(self, begun, settings, target):
        settings.HOST_PATHS = ["/"]
        (begun.data / "pki").mkdir()
        (begun.data / "pki" / "secret-key").write_text("hush")
        self.exchanged(begun, target.format(data=begun.data))

    def test_exchanged_it_does_not_lead_out_of_what_is_allowed(self, begun, settings, tmp_path):
        (tmp_path / "secret-key").write_text("hush")
        settings.HOST_PATHS = [str(begun.out)]
        self.exchanged(begun, tmp_path, annotations={CREATOR_ANNOTATION: "sam"})

    @pytest.mark.parametrize("kind", ["DirectoryOrCreate", "FileOrCreate"])
    def test_nothing_is_made_outside_of_what_is_allowed(self, begun, settings, tmp_path, kind):
        settings.HOST_PATHS = [str(begun.out)]
        for name, path in (("in", begun.out / "made"), ("out", tmp_path / "made")):
            begun.submit(
                name, volumes=[{"name": "h", "hostPath": {"path": str(path), "type": kind}}],
                containers=[container("true", mount("h"))], annotations={CREATOR_ANNOTATION: "sam"},
            )  # fmt: skip
        begun.until_waits("does not lie below", name="out")
        begun.until_phase("Succeeded", "in")
        assert (begun.out / "made").exists()
        assert not (tmp_path / "made").exists()


ROOTS = {CREATOR_ANNOTATION: "root"}


class TestWhoMayHaveAHostPath:
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

    def of(self, node, **fields):
        volumes = [{"name": "h", "hostPath": {"path": str(node.out)}}]
        node.submit(volumes=volumes, containers=[container("true", mount("h"))], **fields)

    @cases("fields", {
        "a pod that claims an administrator's name is its job's": {"owner": "JOB", "annotations": ROOTS},
        "a pod that names nobody may mount what everybody may": {},
        "a pod whose owner is gone is nobody's": {"owner": "a-uid-of-the-past"},
    })  # fmt: skip
    def test_whose_a_pod_is(self, machine, fields):
        person("root", "administrator")
        person("sam", "submitter", "d")
        job = {"metadata": {"name": "j", "namespace": "d", "annotations": {CREATOR_ANNOTATION: "sam"}}, "spec": {}}
        uid = store.write(Create(JOBS, job))[0].uid
        self.of(machine.begin(), **{**fields, **({"owner": uid} if fields.get("owner") == "JOB" else {})})
        machine.until_waits("hostPath")


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
    def test_update_writes_through_no_link_of_the_pod_which_can_write_none_where_they_are_mounted(
        self, begun, kind, attack
    ):
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
        assert victim.read_text() == "untouched"
        assert list(folder.iterdir()) == []

    def test_all_files_change_at_once_and_old_ones_go(self, begun):
        put(CONFIGMAPS, "c", data={"a": "1", "b": "1", "gone": "1"})
        script = (
            f"touch {begun.out}/ready; while [ -e $VOLUME_C/gone ]; do :; done;"
            f"cat $VOLUME_C/a $VOLUME_C/b > {begun.out}/seen;"
            # Its name goes after the files have changed, as a kubelet does it.
            f"while [ -L $VOLUME_C/gone ]; do :; done; ls -A $VOLUME_C > {begun.out}/names"
        )
        volume = {"name": "c", "configMap": {"name": "c"}}
        begun.submit(volumes=[volume], containers=[container(script, mount("c", "/cfg"))])
        begun.until((begun.out / "ready").exists)
        change(CONFIGMAPS, "c", data={"a": "2", "b": "2", "gone": None})
        begun.until_phase("Succeeded")
        assert (begun.out / "seen").read_text() == "22"
        names = (begun.out / "names").read_text().split()
        assert [one for one in names if not one.startswith("..2")] == ["..data", "a", "b"]


class TestFifos:
    """Who opens a FIFO waits for its other end: the node opens none that a pod has made."""

    def test_fifos_where_the_node_looks_hold_nobody(self, begun):
        make = "mkfifo $VOLUME_V/pipe $TMPDIR/pipe pipe"
        limited = {"resources": {"limits": {"ephemeral-storage": "1Gi"}}}
        begun.submit(
            volumes=[{"name": "v", "emptyDir": {"sizeLimit": "1Gi"}}],
            initContainers=[{**container(make, mount("v", "/v"), name="init"), **limited}],
            containers=[{**container("test -p $VOLUME_V; sleep 600", mount("v", subPath="pipe")), **limited}],
        )
        begun.until_phase("Running")
        begun.agent.storage.look()
        begun.shell("true", "other")
        begun.until_phase("Succeeded", "other")
        begun.delete()
        begun.until(lambda: begun.pod() is None)
        retention.clean(begun.agent.layout, set(), set(), days=0, most_bytes=0)


def test_removing_a_pod_s_files_follows_no_link(tmp_path):
    layout = Layout(tmp_path)
    layout.pods.mkdir(parents=True)
    (tmp_path / "victim" / "_work").mkdir(parents=True)
    (tmp_path / "victim" / "_work" / "file").touch()
    (layout.pods / "uid").symlink_to(tmp_path / "victim")
    subprocess.run(["touch", "-h", "-d", "@0", layout.pods / "uid"], check=True)
    subprocess.run(["touch", "-d", "@0", tmp_path / "victim"], check=True)
    retention.clean(layout, set(), set(), days=0, most_bytes=0)
    assert (tmp_path / "victim" / "_work" / "file").exists()


def test_a_shim_writes_its_log_through_no_link(attempts):
    directory = attempts.directory()
    victim = attempts.root / "victim"
    victim.write_text("untouched")
    (directory / "log.000000000000000").symlink_to(victim)
    attempts.shell("echo out", directory=directory)
    attempts.until_gone(attempts.shim(directory))
    assert victim.read_text() == "untouched"
