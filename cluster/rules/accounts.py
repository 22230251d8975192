"""ServiceAccounts, which programs act as."""

from __future__ import annotations

from cluster.rules.checks import RulesView
from kube import names
from kube.errors import Cause, invalid
from kube.meta import Object


def validate(account: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with an account: it may name only what can be a secret."""
    return [
        invalid(f"{field}[{number}].name", name, problem)
        for field in ("secrets", "imagePullSecrets")
        for number, reference in enumerate(account.get(field) or ())
        if (name := reference.get("name") or "") and (problem := names.dns_subdomain(name))
    ]
