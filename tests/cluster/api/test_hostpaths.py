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


def made_later(kind, path):
    """A template of later jobs, with a directory of the machine."""
    of_job = {
        "tasks": [
            {"name": "t", "replicas": 1, "template": {"spec": {**spec(path), "restartPolicy": "Never"}}}
        ]
    }
    specs = {
        resources.JOB_TEMPLATES: of_job,
        resources.CRON_JOBS: {"schedule": "@daily", "jobTemplate": {"spec": of_job}},
        resources.JOB_FLOWS: {"flows": [{"name": "a", "patch": {"jobSpec": of_job}}]},
    }
    return {"metadata": {"name": "x", "namespace": "default"}, "spec": specs[kind]}


SHARED = [resources.JOB_TEMPLATES, resources.JOB_FLOWS]


@pytest.mark.parametrize("kind", [*SHARED, resources.CRON_JOBS], ids=lambda kind: kind.kind)
def test_what_makes_jobs_later_is_judged_as_a_job(person, kind):
    with pytest.raises(Forbidden, match='hostPath "/srv/data" is not allowed'):
        api.create(person("sam", default="submitter"), kind, made_later(kind, "/srv/data"))


@pytest.mark.parametrize("kind", SHARED, ids=lambda kind: kind.kind)
def test_what_several_people_make_jobs_with_has_no_administrator_s_rights(admin, settings, kind):
    with pytest.raises(Forbidden, match="The jobs of flows may mount only directories below"):
        api.create(admin, kind, made_later(kind, "/srv/data"))
    settings.HOST_PATHS = ["/srv"]
    api.create(admin, kind, made_later(kind, "/srv/data"))


def test_nobody_decides_what_runs_with_a_path_that_he_may_not_mount(person, admin):
    kind = resources.CRON_JOBS
    wanted = made_later(kind, "/srv/data")
    api.create(admin, kind, wanted)
    olga = person("olga", default="operator")
    api.patch(olga, kind, "default", "x", {"metadata": {"labels": {"a": "b"}}, "spec": {"suspend": True}})
    other = made_later(kind, "/srv/data")
    pod = other["spec"]["jobTemplate"]["spec"]["tasks"][0]["template"]["spec"]
    pod["containers"][0]["command"] = ["rm", "-rf", "/"]
    for change in (other, made_later(kind, "/etc")):
        with pytest.raises(Forbidden, match=r'hostPath "/(srv/data|etc)" is not allowed'):
            api.patch(olga, kind, "default", "x", {"spec": change["spec"]})
    api.patch(admin, kind, "default", "x", {"spec": other["spec"]})
