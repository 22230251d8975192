from __future__ import annotations

import pytest

from cluster import api
from cluster.store import store
from kube import resources
from kube.errors import Forbidden, NotFound

from .conftest import job

pytestmark = pytest.mark.django_db
POD, JOB = "Pod", "Job"


@pytest.fixture(autouse=True)
def _cluster(cluster):
    pass


def spec(path):
    return {
        "containers": [{"name": "main", "image": "any", "command": ["true"]}],
        "volumes": [{"name": "h", "hostPath": {"path": path}}],
    }


def create(actor, kind, path):
    if kind == POD:
        pod = {"metadata": {"name": "x", "namespace": "default"}, "spec": spec(path)}
        return api.create(actor, resources.PODS, pod)
    template = {"spec": {**spec(path), "restartPolicy": "Never"}}
    return api.create(
        actor, resources.JOBS, job("x", tasks=[{"name": "t", "replicas": 1, "template": template}])
    )


@pytest.mark.parametrize("kind", [POD, JOB])
@pytest.mark.parametrize("role", ["submitter", "operator", "administrator"])
def test_a_path_of_the_machine_takes_an_administrator_of_everything(person, kind, role):
    with pytest.raises(Forbidden, match='"x" is forbidden: hostPath "/srv/data" is not allowed') as refusal:
        create(person("sam", default=role), kind, "/srv/data")
    assert "ask an administrator to add the directory to VOLCANO_UI_HOST_PATHS" in str(refusal.value)
    with pytest.raises(NotFound):
        store.get(resources.PODS if kind == POD else resources.JOBS, "default", "x")


@pytest.mark.parametrize("kind", [POD, JOB])
def test_an_administrator_of_everything_may_name_any(admin, kind):
    create(admin, kind, "/srv/data")


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        pytest.param("/srv/data", True, id="the directory"),
        pytest.param("/srv/data/deep/er", True, id="below it"),
        pytest.param("/srv//data/./x", True, id="written otherwise"),
        pytest.param("/srv/database", False, id="a longer name"),
        pytest.param("/srv", False, id="above it"),
    ],
)
def test_what_the_setting_names_is_everybody_s(person, settings, path, allowed):
    settings.HOST_PATHS = ["/srv/data/"]
    sam = person("sam", default="submitter")
    if allowed:
        create(sam, POD, path)
    else:
        with pytest.raises(Forbidden, match=r"only below /srv/data"):
            create(sam, POD, path)
