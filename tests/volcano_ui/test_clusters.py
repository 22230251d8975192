"""What `up` makes of the clusters that are named, before it starts anything."""

from __future__ import annotations

import pytest
import yaml

from cluster.several.entries import Entry
from volcano_ui import clusters
from volcano_ui.up import StartError


@pytest.fixture
def kubeconfig(tmp_path):
    config = {
        "contexts": [{"name": name, "context": {"cluster": name}} for name in ("dev", "prod")],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}"}} for name in ("dev", "prod")],
        "current-context": "dev",
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    return str(tmp_path / "config")


def test_current_context_stays_the_same_while_it_runs(kubeconfig):
    named = [Entry("home"), Entry("a", kubeconfig), Entry("b", kubeconfig, "prod", "read-only")]
    assert clusters._pinned(named) == [
        Entry("home"),
        Entry("a", kubeconfig, "dev"),
        Entry("b", kubeconfig, "prod", "read-only"),
    ]


def test_one_cluster_under_two_names_is_refused(kubeconfig):
    named = [Entry("a", kubeconfig), Entry("b", kubeconfig, "dev")]
    with pytest.raises(StartError, match="a and b of VOLCANO_UI_CLUSTERS are the same cluster; leave one out"):
        clusters._pinned(named)


def test_cluster_that_is_nowhere_is_refused(kubeconfig):
    with pytest.raises(StartError, match=r"has 'a=.*#none': .* no context 'none'\. It has dev, prod\."):
        clusters._pinned([Entry("a", kubeconfig, "none")])
