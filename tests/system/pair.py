"""Two systems, of which one has the other behind its pages or works on it.

The fixtures are for who brings `first`, the cluster, and `second`, the system beside it. `installed` starts what the
behaviour of the whole is tried on, in either mode.
"""

import html
import itertools
import re
from contextlib import contextmanager

import pytest

from kube.resources import JOBS
from proof.systems.system import running
from proof.systems.work import Person, Watcher


@contextmanager
def installed(mode, folder, nodes=0):
    """A running system in a mode, the cluster on which it works in-place included; at the end nothing of them may be left."""
    if mode == "embedded":
        with running(folder / "data", nodes=nodes) as system:
            yield system
        return
    with running(folder / "cluster", nodes=nodes, **BARE) as cluster:
        kubeconfig = cluster.kubeconfig(folder / "kubeconfig")
        with running(folder / "data", **in_place(kubeconfig)) as system:
            system.cluster = cluster
            yield system


BARE = {"DJANGO_SETTINGS_MODULE": "proof.systems.bare"}  # of a cluster without Volcano's controllers


def in_place(kubeconfig):
    """The settings of a system that works on a cluster."""
    return {
        "VOLCANO_UI_KUBECONFIG": str(kubeconfig),
        "VOLCANO_UI_WAY": "in-place",
        "VOLCANO_UI_LEASE_NAMESPACE": "kube-system",
    }


@pytest.fixture(scope="module")
def kubeconfig(first, tmp_path_factory):
    return first.kubeconfig(tmp_path_factory.mktemp("kubeconfig") / "config")


@pytest.fixture
def person(second):
    with Person(second) as somebody:
        yield somebody


@pytest.fixture
def there(first):
    with first.store() as store:
        yield Watcher(store)


@pytest.fixture
def here(second):
    with second.store() as store:
        yield Watcher(store)


def phases(watcher, name):
    """Return the phases that a job had in the log, in order."""
    jobs = [each.object for each in watcher.everything() if each.resource == JOBS.id and each.name == name]
    found = [((each.get("status") or {}).get("state") or {}).get("phase") for each in jobs]
    return [phase for phase, _ in itertools.groupby(filter(None, found))]


def strip(person):
    """Return what the strip below the navigation says; the cluster's name without what tells it from others."""
    found = re.search(r'<aside class="cluster-strip".*?</aside>', person.get("/").text, re.DOTALL)
    assert found, "no strip"
    words = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", found[0])).strip())
    return re.sub(r"^(volcano-ui)-\S+", r"\1", words)
