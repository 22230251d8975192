"""Which cluster a kubeconfig names, and what is said when it names none."""

from __future__ import annotations

import pytest
import yaml

from cluster.remote import target
from cluster.remote.target import Target, TargetError

CONFIG = {
    "contexts": [
        {"name": "dev", "context": {"cluster": "one", "user": "me"}},
        {"name": "lost", "context": {"cluster": "none"}},
    ],
    "clusters": [{"name": "one", "cluster": {"server": "https://one:6443/"}}],
    "current-context": "dev",
}


@pytest.fixture
def file(tmp_path):
    def write(config):
        (tmp_path / "config").write_text(config if isinstance(config, str) else yaml.safe_dump(config))
        return str(tmp_path / "config")

    return write


def test_current_context_is_taken(file):
    path = file(CONFIG)
    assert target.find(path, "") == Target("dev", "https://one:6443", path)


@pytest.mark.parametrize(
    ("config", "context", "words"),
    [
        pytest.param(CONFIG, "prod", "no context 'prod'. It has dev, lost.", id="unknown context"),
        pytest.param(CONFIG, "lost", "names the cluster 'none', which has no server", id="unknown cluster"),
        pytest.param({**CONFIG, "current-context": ""}, "", "no current context", id="no current context"),
        pytest.param({}, "", "It has none.", id="empty"),
        pytest.param("- a\n", "", "is no kubeconfig", id="another file"),
        pytest.param("{", "", "is no YAML", id="no YAML"),
    ],
)
def test_what_is_wrong_is_said(file, config, context, words):
    with pytest.raises(TargetError, match=words.replace(".", r"\.")):
        target.find(file(config), context)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(TargetError, match="none cannot be read: No such file"):
        target.find(str(tmp_path / "none"), "")


def test_pod_finds_its_own_cluster(monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    assert target.find("in-cluster", "") == Target("in-cluster", "https://[fd00::1]:443", "")
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(TargetError, match="runs in no cluster"):
        target.find("in-cluster", "")


def test_directories_of_two_clusters_differ():
    one, other = Target("a/b:c", "https://one", ""), Target("a/b:c", "https://two", "")
    assert one.directory.startswith("a-b-c-")
    assert one.directory != other.directory
    assert "/" not in one.directory
