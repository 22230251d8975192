"""What the Makefile builds for Kubernetes' tests, by a Go that writes down each build and builds nothing."""

import shutil

import pytest
from django.conf import settings

from tests.tables import cases

ETCD = "proof/kubernetes/programs/etcd"
GO = """cd
[ "$1" = version ] && exec cat version
echo >> builds
[ -e broken ] && exit 1
while [ "$1" != -o ]; do shift; done
echo "of $(cat version)" > "$2/etcd"
"""


@pytest.fixture
def build(project):
    """Build etcd in a clone, which is made of that name, and return the exit status."""
    project.program("bin/go", GO)
    project.write({"version": "go 1"})
    for name in ("one", "two"):
        project.write({f"{name}/{ETCD}/go.mod": "module", f"{name}/{ETCD}/go.sum": "sums"})
        shutil.copy(settings.BASE_DIR / "Makefile", project.folder / name)

    return lambda name: project.run("make", "-C", name, ".cache/kubernetes/etcd/built")[0]


def builds(project):
    return len((project.folder / "builds").read_text())


@cases("changes, expected", {
    "nothing": ({}, 1),
    "modules": ({f"two/{ETCD}/go.mod": "another"}, 2),
    "sums": ({f"two/{ETCD}/go.sum": "others"}, 2),
    "Go": ({"version": "go 2"}, 2),
})  # fmt: skip
def test_another_clone_builds_what_differs(project, build, changes, expected):
    assert build("one") == 0
    project.write(changes)
    assert build("two") == 0
    assert builds(project) == expected
    version = (project.folder / "version").read_text()
    assert (project.folder / "two/.cache/kubernetes/etcd/etcd").read_text() == f"of {version}\n"


def test_a_clone_that_has_it_takes_it_again(project, build):
    assert build("one") == 0
    (project.folder / "one" / ETCD / "go.mod").touch()
    assert build("one") == 0
    assert builds(project) == 1


def test_a_build_that_fails_leaves_nothing(project, build):
    project.write({"broken": ""})
    assert build("one") != 0
    assert list(project.folder.glob("one/.cache/kubernetes/etcd/*")) == []
    assert list(project.folder.glob(".cache/volcano-ui/kubernetes/*")) == []
    (project.folder / "broken").unlink()
    assert build("one") == 0
