"""What a process knows of some kinds goes on whatever somebody has stored."""

from __future__ import annotations

import pytest

from cluster.runtime.picture import Kept
from cluster.store import Create, store
from kube.kinds.pod import Pod
from kube.resources import PODS
from tests import builders

pytestmark = pytest.mark.django_db(transaction=True)


class Names:
    """The pods that could be read."""

    def __init__(self, revision):
        self.revision, self.names = revision, []

    def take(self, change):
        self.names.append(change.read(Pod).metadata.name)


def test_of_what_cannot_be_read_nothing_is_known_and_the_rest_goes_on():
    kept = Kept([PODS], Names)
    with kept.current(store.revision()):
        pass
    odd = builders.pod("odd")
    odd["metadata"]["labels"] = "none"
    store.write(Create(PODS, odd), Create(PODS, builders.pod("even")))
    with kept.current(store.revision()) as known:
        assert known.names == ["even"]
