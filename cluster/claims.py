"""Who somebody is, as an OpenID Connect provider says it in the claims of a token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LONGEST_GROUP = 150
LONGEST_SUBJECT = 255  # OpenID Connect Core, section 2


class ClaimError(ValueError):
    """A claim is missing or cannot be used; the message names it and the remedy."""


@dataclass(frozen=True)
class Person:
    """Somebody whom a provider knows: `subject` is his own for ever, `name` and `groups` may change."""

    issuer: str
    subject: str
    name: str
    groups: tuple[str, ...]


def person(claims: Mapping[str, Any], *, name_claim: str, groups_claim: str) -> Person:
    """Read the claims of a token that was verified.

    Without the claim of groups somebody is in none: providers leave it out then. Names of groups that
    no group here may have, such as those that begin with `system:`, are passed over.
    """
    name = claims.get(name_claim)
    if not isinstance(name, str) or not name.strip():
        raise ClaimError(
            f"The claim {name_claim}, which is to be the user's name, is missing; there are "
            f"{', '.join(sorted(claims))}. Let the provider send it, or name another in VOLCANO_UI_OIDC_NAME_CLAIM."
        )
    groups = claims.get(groups_claim) or []
    if not isinstance(groups, list) or not all(isinstance(each, str) for each in groups):
        raise ClaimError(
            f"The claim {groups_claim} is not a list of names. Let the provider send one, "
            "or name another in VOLCANO_UI_OIDC_GROUPS_CLAIM."
        )
    subject = str(claims["sub"])
    if not 0 < len(subject) <= LONGEST_SUBJECT:
        raise ClaimError(f"The claim sub has {len(subject)} characters; it must have 1 to {LONGEST_SUBJECT}.")
    usable = {
        each
        for each in groups
        if 0 < len(each) <= LONGEST_GROUP and each.isprintable() and not each.startswith("system:")
    }
    return Person(str(claims["iss"]), subject, name.strip(), tuple(sorted(usable)))
