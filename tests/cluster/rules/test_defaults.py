"""What is filled in is what Kubernetes fills in, as a kube-apiserver was seen to do it."""

from __future__ import annotations

import json

import pytest

from proof.systems.system import PROJECT
from tests.cluster.rules.defaulted import CASES, seen
from tests.cluster.rules.known import admitted

GOLDEN = json.loads((PROJECT / "tests/golden/kubernetes/defaults.json").read_text())


@pytest.mark.parametrize("case", CASES)
def test_object_is_stored_as_kubernetes_stores_it(case):
    assert seen(admitted(*CASES[case])) == GOLDEN[case]
