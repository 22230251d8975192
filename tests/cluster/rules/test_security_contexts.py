"""Users and groups at the door."""

from __future__ import annotations

import pytest

from .known import PODS, causes, messages, pod

TOO_MUCH = 2**31


@pytest.mark.parametrize("number", [-1, TOO_MUCH])
@pytest.mark.parametrize("field", ["runAsUser", "runAsGroup", "fsGroup"])
def test_numbers_that_no_user_has_are_refused(field, number):
    (found,) = messages(PODS, pod(securityContext={field: number}))
    assert found.startswith(f"spec.securityContext.{field}: Invalid value")


def test_those_of_containers_and_of_lists_too():
    main = {"name": "main", "image": "i", "command": ["true"], "securityContext": {"runAsUser": TOO_MUCH}}
    given = pod(containers=[main], securityContext={"supplementalGroups": [1, -1]})
    assert [text.partition(":")[0] for text in messages(PODS, given)] == [
        "spec.securityContext.supplementalGroups[1]",
        "spec.containers[0].securityContext.runAsUser",
    ]


def test_others_are_accepted():
    assert causes(PODS, pod(securityContext={"runAsUser": 0, "runAsGroup": 1000, "fsGroup": TOO_MUCH - 1})) == []
