"""Exec and attach ask who might have made the pod: a command in it reaches all that it mounts."""

from __future__ import annotations

import pytest

from cluster.rules import node_walls
from cluster.store import Create, Patch, store
from kube import resources
from kube.resources import CREATOR_ANNOTATION
from tests import builders
from tests.apiserver.test_rights_keeper import COUNTING, door, operator  # noqa: F401  fixtures

EXEC = "exec?command=true&stdout=true"
ATTACH = "attach?stdout=true"


@pytest.fixture
def ask(api, person, settings):
    """Ask for exec or attach, without an upgrade, in a pod of somebody's; return the answer, 400 where it is allowed."""
    settings.HOST_PATHS = ["/srv/shared"]

    def ask(who, way, path="", creator="root", wall="", review=False):
        person("root", everywhere="administrator")
        client = api.as_(person("olga", **{"everywhere": "administrator"} if who == "everywhere" else {"default": who}))
        store.write(
            Create(resources.NODES, builders.node("n", annotations={node_walls.ANNOTATION: wall} if wall else None))
        )
        volumes = [{"name": "h", "hostPath": {"path": path}}] if path else None
        pod = builders.pod("x", nodeName="n", volumes=volumes, annotations={CREATOR_ANNOTATION: creator})
        store.write(Create(resources.PODS, pod))
        if not review:
            return client.request("POST", f"/api/v1/namespaces/default/pods/x/{way}")
        asked = {"verb": "create", "resource": "pods", "subresource": way, "namespace": "default", "name": "x"}
        review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        return client.post(review, {"spec": {"resourceAttributes": asked}})

    return ask


@pytest.mark.parametrize("way", [EXEC, ATTACH])
@pytest.mark.parametrize(
    ("who", "path", "creator", "code"),
    [
        ("operator", "/srv/data", "root", 403), ("administrator", "/srv/data", "root", 403),
        ("everywhere", "/srv/data", "root", 400), ("operator", "/srv/shared/x", "root", 400), ("operator", "", "root", 400),
        ("submitter", "/srv/data", "olga", 403),  # who made it when he was an administrator
        ("submitter", "/srv/shared", "olga", 400), ("submitter", "", "root", 403), ("viewer", "/srv/data", "olga", 403),
    ],
)  # fmt: skip
def test_a_path_of_the_machine_is_reached_by_those_who_may_mount_it(ask, way, who, path, creator, code):
    answer = ask(who, way, path, creator)
    assert answer.status_code == code
    if code == 403 and path and who != "viewer":
        assert f'pods "x" is forbidden: hostPath "{path}" is not allowed' in answer.json()["message"]
        assert "ask an administrator to add the directory to VOLCANO_UI_HOST_PATHS" in answer.json()["message"]


@pytest.mark.parametrize(
    ("who", "creator", "wall", "code"),
    [
        ("operator", "root", "none: no Landlock", 403),
        ("operator", "root", "holds with Landlock", 400),
        ("everywhere", "root", "none: no Landlock", 400),
        ("submitter", "olga", "none: no Landlock", 400),  # its node lets everybody's run
    ],
)
def test_where_there_is_no_wall_nobody_joins_an_administrator_s_pod(ask, who, creator, wall, code):
    answer = ask(who, EXEC, creator=creator, wall=wall)
    assert answer.status_code == code
    assert code != 403 or "the node n has no wall round pods" in answer.json()["message"]


@pytest.mark.parametrize(("who", "allowed"), [("operator", False), ("everywhere", True)])
def test_who_asks_whether_he_may_is_told_the_same(ask, who, allowed):
    status = ask(who, "exec", "/srv/data", review=True).json()["status"]
    assert status["allowed"] is allowed
    assert allowed or 'hostPath "/srv/data" is not allowed' in status["reason"]


def test_a_command_ends_when_the_path_is_not_allowed_any_more(door, node, settings):  # noqa: F811
    volume = {"name": "h", "hostPath": {"path": "/srv/shared"}}
    store.write(Patch(resources.PODS, "d", "p", {"spec": {"volumes": [volume]}}))
    settings.HOST_PATHS = ["/srv/shared"]
    connection = door.connect("sh", "-c", COUNTING)
    node.during(lambda: connection.read_until(b"line"))
    settings.HOST_PATHS = []
    assert node.during(connection.finish)["code"] == 403
