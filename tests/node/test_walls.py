"""Ways out of a pod that were ways out once: what a pod can change is never followed by the node."""

from __future__ import annotations

import subprocess

import pytest

from cluster.store import Create, Patch, store
from kube.resources import CONFIGMAPS, CREATOR_ANNOTATION, JOBS, PODS, SECRETS
from node.agent import retention
from node.paths import Layout
from tests.node.walled import beginning, container, mount, person, refused
from tests.tables import cases


@pytest.fixture(params=["root", "user", "none"])
def begun(request, machine):
    """A machine for each way in which containers get their volumes."""
    return beginning(machine, request.param)


class TestSubPath:
    @pytest.mark.parametrize("kind", ["emptyDir", "persistentVolumeClaim"])
    def test_link_of_an_init_container_shows_nothing_of_the_cluster(self, begun, kind):
        source = {"claimName": "c"} if kind == "persistentVolumeClaim" else {}
        begun.claim()
        begun.submit(
            volumes=[{"name": "v", kind: source}],
            initContainers=[container(f"ln -s {begun.data} $VOLUME_V/out", mount("v", "/v"), name="init")],
            containers=[container(f"cat $VOLUME_V/secret-key > {begun.out}/stolen", mount("v", subPath="out"))],
        )
        text = refused(begun, "CreateContainerConfigError")
        assert "failed to prepare subPath for volumeMount" in text
        assert "leads out of the volume, by the symbolic link" in text
        assert not (begun.out / "stolen").exists()

    def test_link_in_a_claim_leads_no_other_pod_out(self, begun):
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
        begun.claim()
        begun.submit(
            "one", volumes=volumes, containers=[container(f"ln -s {begun.data} $VOLUME_V/out", mount("v", "/v"))]
        )
        begun.until_phase("Succeeded", "one")
        begun.submit(
            "two", volumes=volumes,
            containers=[container(f"cat $VOLUME_V/secret-key > {begun.out}/stolen", mount("v", subPath="out"))],
        )  # fmt: skip
        refused(begun, "leads out of the volume", "two")
        assert not (begun.out / "stolen").exists()

    def test_missing_directories_are_not_made_through_a_link(self, begun):
        begun.submit(
            volumes=[{"name": "v", "emptyDir": {}}],
            initContainers=[container(f"ln -s {begun.out} $VOLUME_V/out", mount("v", "/v"), name="init")],
            containers=[container("true", mount("v", subPath="out/made"))],
        )
        refused(begun, "leads out of the volume")
        assert not (begun.out / "made").exists()

    def test_link_that_stays_in_the_volume_is_followed_as_a_kubelet_does(self, begun):
        script = f"cat $VOLUME_V/file > {begun.out}/seen"
        make = "mkdir $VOLUME_V/v1; echo one > $VOLUME_V/v1/file; ln -s v1 $VOLUME_V/latest"
        begun.submit(
            volumes=[{"name": "v", "emptyDir": {}}],
            initContainers=[container(make, mount("v", "/v"), name="init")],
            containers=[container(script, mount("v", subPath="latest"))],
        )
        begun.until_phase("Succeeded")
        assert (begun.out / "seen").read_text() == "one\n"

    def test_one_key_of_a_config_map_can_be_mounted(self, begun):
        store.write(Create(CONFIGMAPS, {"metadata": {"name": "c", "namespace": "d"}, "data": {"k": "v"}}))
        begun.submit(
            volumes=[{"name": "v", "configMap": {"name": "c"}}],
            containers=[container(f"cat $VOLUME_V > {begun.out}/seen", mount("v", "/etc/k.conf", subPath="k"))],
        )
        begun.until_phase("Succeeded")
        assert (begun.out / "seen").read_text() == "v"


class TestMountPoints:
    def test_no_mount_point_is_made_through_a_link_in_another_volume(self, mounted):
        mounted.submit(
            volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}],
            initContainers=[container(f"ln -s {mounted.out} $VOLUME_V/out", mount("v", "/v"), name="init")],
            containers=[container("true", mount("v", "/v"), mount("w", "/v/out/made"))],
        )
        refused(mounted, "A volume cannot be mounted at /v/out/made")
        assert not (mounted.out / "made").exists()

    def test_no_mount_point_is_made_through_a_link_in_a_directory_of_the_machine(self, mounted):
        mounted.out.chmod(0o777)
        (mounted.out / "elsewhere").mkdir()
        (mounted.out / "link").symlink_to("elsewhere")
        mounted.submit(
            volumes=[{"name": "v", "emptyDir": {}}],
            containers=[container("true", mount("v", f"{mounted.out}/link/made"))],
        )
        refused(mounted, "leads through the symbolic link")
        assert list((mounted.out / "elsewhere").iterdir()) == []


class TestHostPath:
    def exchanged(self, node, target, path=None, **fields):
        path = path or node.out / "x"
        node.submit(
            volumes=[{"name": "h", "hostPath": {"path": str(path), "type": "DirectoryOrCreate"}}],
            initContainers=[container(f"rmdir {path}; ln -s {target} {path}", mount("h", "/h"), name="init")],
            containers=[container(f"cat $VOLUME_H/secret-key > {node.out}/stolen", mount("h"))],
            **fields,
        )

    @pytest.mark.parametrize("target", ["{data}", "{data}/pki", "/"], ids=["is", "lies below", "contains"])
    def test_exchanged_by_an_init_container_it_shows_nothing_of_the_cluster(self, begun, settings, target):
        settings.HOST_PATHS = ["/"]
        (begun.data / "pki").mkdir()
        (begun.data / "pki" / "secret-key").write_text("hush")
        self.exchanged(begun, target.format(data=begun.data))
        refused(begun, "failed to prepare volume for volumeMount")
        assert not (begun.out / "stolen").exists()

    def test_exchanged_it_does_not_lead_out_of_what_is_allowed(self, begun, settings, tmp_path):
        allowed, other = begun.out, tmp_path / "other"
        other.mkdir()
        (other / "secret-key").write_text("hush")
        settings.HOST_PATHS = [str(allowed)]
        self.exchanged(begun, other, allowed / "x", annotations={CREATOR_ANNOTATION: "sam"})
        refused(begun, "failed to prepare volume for volumeMount")
        assert not (begun.out / "stolen").exists()

    @pytest.mark.parametrize("kind", ["DirectoryOrCreate", "FileOrCreate"])
    def test_nothing_is_made_outside_of_what_is_allowed(self, begun, settings, tmp_path, kind):
        settings.HOST_PATHS = [str(begun.out)]
        for name, path in (("in", begun.out / "made"), ("out", tmp_path / "made")):
            begun.submit(
                name, volumes=[{"name": "h", "hostPath": {"path": str(path), "type": kind}}],
                containers=[container("true", mount("h"))], annotations={CREATOR_ANNOTATION: "sam"},
            )  # fmt: skip
        refused(begun, "does not lie below", "out")
        begun.until_phase("Succeeded", "in")
        assert (begun.out / "made").exists()
        assert not (tmp_path / "made").exists()


def job_of(name):
    body = {"metadata": {"name": "j", "namespace": "d", "annotations": {CREATOR_ANNOTATION: name}}, "spec": {}}
    return store.write(Create(JOBS, body))[0].uid


class TestWhoMayHaveAHostPath:
    def of(self, node, creator="", **fields):
        node.submit(
            volumes=[{"name": "h", "hostPath": {"path": str(node.out)}}],
            containers=[container("true", mount("h"))],
            annotations={CREATOR_ANNOTATION: creator} if creator else {}, **fields,
        )  # fmt: skip

    @cases("role, namespace, phase", {
        "administrator of everything": ("administrator", "*", "Succeeded"),
        "administrator of the namespace": ("administrator", "d", "Pending"),
        "operator": ("operator", "*", "Pending"),
        "submitter": ("submitter", "d", "Pending"),
    })  # fmt: skip
    def test_it_takes_an_administrator_of_everything(self, machine, role, namespace, phase):
        person("pat", role, namespace)
        machine.begin()
        self.of(machine, "pat")
        if phase == "Pending":
            assert "ask an administrator to add the directory to VOLCANO_UI_HOST_PATHS" in refused(machine, "hostPath")
        machine.until_phase(phase)

    def test_what_the_setting_names_is_everybody_s(self, machine, settings):
        settings.HOST_PATHS = [str(machine.out.parent)]
        machine.begin()
        self.of(machine, "somebody")
        machine.until_phase("Succeeded")

    def test_a_pod_that_claims_an_administrator_s_name_is_its_job_s_owner_s(self, machine):
        person("root", "administrator")
        person("sam", "submitter", "d")
        machine.begin()
        uid = job_of("sam")
        reference = {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "name": "j",
            "uid": uid,
            "controller": True,
        }
        body = {
            "metadata": {"name": "p", "namespace": "d", "annotations": {CREATOR_ANNOTATION: "root"}, "ownerReferences": [reference]},
            "spec": {
                "restartPolicy": "Never", "nodeName": "here", "containers": [container("true", mount("h"))],
                "volumes": [{"name": "h", "hostPath": {"path": str(machine.out)}}],
            },
            "status": {"phase": "Pending"},
        }  # fmt: skip
        store.write(Create(PODS, body))
        refused(machine, "hostPath")

    def test_a_pod_that_names_nobody_may_mount_what_everybody_may(self, node):
        self.of(node)
        refused(node, "hostPath")

    def test_a_pod_whose_owner_is_gone_is_nobody_s(self, node):
        self.of(node, owner="a-uid-of-the-past")
        refused(node, "hostPath")


@pytest.fixture(params=["configMap", "secret", "projected"])
def made_from(request):
    """A volume that is made from an object, and how that is changed."""
    if request.param == "secret":
        store.write(Create(SECRETS, {"metadata": {"name": "c", "namespace": "d"}, "data": {"key": "b25l"}}))
        change = Patch(SECRETS, "d", "c", {"data": {"key": "dHdv"}})
        return {"name": "c", "secret": {"secretName": "c"}}, change
    store.write(Create(CONFIGMAPS, {"metadata": {"name": "c", "namespace": "d"}, "data": {"key": "one"}}))
    change = Patch(CONFIGMAPS, "d", "c", {"data": {"key": "two"}})
    if request.param == "projected":
        return {"name": "c", "projected": {"sources": [{"configMap": {"name": "c"}}]}}, change
    return {"name": "c", "configMap": {"name": "c"}}, change


class TestPublishedFiles:
    @cases("attack", {
        "draft": "ln -s {victim} $VOLUME_C/.key.new",
        "key": "ln -sf {victim} $VOLUME_C/key",
        "version": "ln -sfn {folder} $VOLUME_C/..data",
        "no version": "rm -r $VOLUME_C/..data $VOLUME_C/..2*; ln -s {folder} $VOLUME_C/..data",
        "in the version": "rm $VOLUME_C/..2*/key; ln -s {victim} $VOLUME_C/..data/key",
        "directory": "rm $VOLUME_C/key; mkdir $VOLUME_C/key",
        "FIFO": "rm $VOLUME_C/key; mkfifo $VOLUME_C/key",
        "FIFO as version": "rm $VOLUME_C/..data; mkfifo $VOLUME_C/..data",
        "FIFO in the version": "rm $VOLUME_C/..2*/key; mkfifo $VOLUME_C/..data/key",
    })  # fmt: skip
    def test_update_writes_through_no_link_of_the_pod(self, begun, made_from, attack):
        volume, change = made_from
        victim, folder = begun.out / "victim", begun.out / "folder"
        victim.write_text("untouched")
        folder.mkdir()
        script = f"({attack.format(victim=victim, folder=folder)}) || true; touch {begun.out}/ready; sleep 60"
        uid = begun.submit(volumes=[volume], containers=[container(script, mount("c", "/cfg"))])
        begun.until((begun.out / "ready").exists)
        store.write(change)
        shown = begun.data / "node" / "pods" / uid / "_volumes" / "c" / "key"
        begun.until(lambda: shown.is_file() and not shown.samefile(victim) and shown.read_text() == "two")
        assert victim.read_text() == "untouched"
        assert list(folder.iterdir()) == []

    def test_they_cannot_be_written_where_they_are_mounted(self, begun, made_from):
        volume, _ = made_from
        begun.submit(volumes=[volume], containers=[container("echo x > $VOLUME_C/new", mount("c", "/cfg"))])
        begun.until_phase("Failed")

    def test_all_files_change_at_once_and_old_ones_go(self, begun):
        files = {"a": "1", "b": "1", "gone": "1"}
        store.write(Create(CONFIGMAPS, {"metadata": {"name": "c", "namespace": "d"}, "data": files}))
        script = (
            f"touch {begun.out}/ready; while [ -e $VOLUME_C/gone ]; do :; done;"
            f"cat $VOLUME_C/a $VOLUME_C/b > {begun.out}/seen;"
            # Its name goes after the files have changed, as a kubelet does it.
            f"while [ -L $VOLUME_C/gone ]; do :; done; ls -A $VOLUME_C > {begun.out}/names"
        )
        begun.submit(
            volumes=[{"name": "c", "configMap": {"name": "c"}}], containers=[container(script, mount("c", "/cfg"))]
        )
        begun.until((begun.out / "ready").exists)
        store.write(Patch(CONFIGMAPS, "d", "c", {"data": {"a": "2", "b": "2", "gone": None}}))
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
