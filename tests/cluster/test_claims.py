from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.claims import ClaimError, person
from tests.tables import cases

CLAIMS = {"iss": "https://p", "sub": "1", "preferred_username": "alice"}
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=300) | st.lists(st.text(max_size=200) | st.none())


def read(**claims):
    return person({**CLAIMS, **claims}, name_claim="preferred_username", groups_claim="groups")


@cases("claims, words", {
    "empty name": ({"preferred_username": ""}, "VOLCANO_UI_OIDC_NAME_CLAIM"),
    "blank name": ({"preferred_username": " "}, "there are iss, preferred_username, sub"),
    "name that is a number": ({"preferred_username": 7}, "preferred_username"),
    "groups in one text": ({"groups": "staff"}, "groups is not a list of names"),
    "groups in a map": ({"groups": {"staff": 1}}, "VOLCANO_UI_OIDC_GROUPS_CLAIM"),
    "groups that are numbers": ({"groups": [1]}, "groups"),
    "long subject": ({"sub": "x" * 256}, "sub has 256 characters"),
})  # fmt: skip
def test_a_claim_that_cannot_be_used_is_named(claims, words):
    with pytest.raises(ClaimError, match=words):
        read(**claims)


def test_the_names_of_the_claims_are_chosen():
    found = person({**CLAIMS, "email": "a@b", "roles": ["x"]}, name_claim="email", groups_claim="roles")
    assert (found.name, found.groups) == ("a@b", ("x",))


@given(st.dictionaries(st.sampled_from(["sub", "preferred_username", "groups"]), VALUES))
def test_whatever_is_sent_gives_a_person_whom_accounts_can_take_or_a_sentence(claims):
    with contextlib.suppress(ClaimError):
        found = read(**claims)
        assert found.name.strip() == found.name != ""
        assert 0 < len(found.subject) <= 255
        assert all(0 < len(each) <= 150 and each.isprintable() for each in found.groups)
        assert not any(each.startswith("system:") for each in found.groups)
        assert list(found.groups) == sorted(set(found.groups))
