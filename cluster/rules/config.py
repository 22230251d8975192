"""Secrets and ConfigMaps: keys, base64, size, and what is fixed once they are immutable."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from cluster.rules.checks import IMMUTABLE, RulesView
from kube.errors import Cause, forbidden, invalid, required, too_long
from kube.meta import Object

OPAQUE = "Opaque"
LARGEST = 1024 * 1024  # bytes of all values
LONGEST_KEY = 253
# The keys that a secret of a type must have; of each group one.
NEEDED: dict[str, tuple[tuple[str, ...], ...]] = {
    "kubernetes.io/dockercfg": ((".dockercfg",),),
    "kubernetes.io/dockerconfigjson": ((".dockerconfigjson",),),
    "kubernetes.io/basic-auth": (("username", "password"),),
    "kubernetes.io/ssh-auth": (("ssh-privatekey",),),
    "kubernetes.io/tls": (("tls.crt",), ("tls.key",)),
}
ACCOUNT_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105  the name of a type
ACCOUNT_NAME = "kubernetes.io/service-account.name"
FROZEN = "field is immutable when `immutable` is set"
_KEY = re.compile(r"[-._a-zA-Z0-9]+")


def default_secret(secret: Object, old: Object | None, view: RulesView) -> None:
    """Give a secret its type, and move `stringData`, which is never shown, into `data`."""
    secret["type"] = secret.get("type") or OPAQUE
    plain = secret.pop("stringData", None) or {}
    if plain:
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in plain.items()}
        secret["data"] = {**(secret.get("data") or {}), **encoded}


def validate_secret(secret: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a secret; its type stays what it was."""
    data = secret.get("data") or {}
    causes = [*_check_keys(data, "data"), *_check_base64(data, "data")]
    needed = NEEDED.get(secret["type"], ())
    causes += [required(f"data[{group[0]}]") for group in needed if data.keys().isdisjoint(group)]
    annotations = secret["metadata"].get("annotations") or {}
    if secret["type"] == ACCOUNT_TOKEN and not annotations.get(ACCOUNT_NAME):
        causes.append(required(f"metadata.annotations[{ACCOUNT_NAME}]"))
    size = sum(len(value) * 3 // 4 for value in data.values())
    if size > LARGEST:
        causes.append(too_long("data", LARGEST))
    if old is not None:
        if secret["type"] != (old.get("type") or OPAQUE):
            causes.append(invalid("type", secret["type"], IMMUTABLE))
        causes += _check_frozen(secret, old, ("data",))
    return causes


def validate_config_map(config: Object, old: Object | None, view: RulesView) -> list[Cause]:
    """Return what is wrong with a ConfigMap."""
    data, binary = config.get("data") or {}, config.get("binaryData") or {}
    causes = [*_check_keys(data, "data"), *_check_keys(binary, "binaryData"), *_check_base64(binary, "binaryData")]
    causes += [
        invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        for key in sorted(set(data) & set(binary))
    ]
    size = sum(len(text.encode()) for text in data.values())
    size += sum(len(value) * 3 // 4 for value in binary.values())
    if size > LARGEST:
        causes.append(too_long("", LARGEST))
    if old is not None:
        causes += _check_frozen(config, old, ("data", "binaryData"))
    return causes


def _check_keys(data: dict[str, Any], path: str) -> Iterator[Cause]:
    for key in data:
        if len(key) > LONGEST_KEY:
            yield invalid(f"{path}[{key}]", key, f"must be no more than {LONGEST_KEY} characters")
        elif not _KEY.fullmatch(key):
            detail = (
                "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name', "
                f" or 'KEY_NAME',  or 'key-name', regex used for validation is '{_KEY.pattern}')"
            )
            yield invalid(f"{path}[{key}]", key, detail)
        elif key in (".", "..") or key.startswith(".."):
            yield invalid(f"{path}[{key}]", key, "must not start with '..'" if len(key) > 1 else "must not be '.'")


def _check_base64(data: dict[str, str], path: str) -> Iterator[Cause]:
    for key, value in data.items():
        try:
            base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
        except (binascii.Error, ValueError):
            # The value is a secret: it is not repeated.
            yield Cause("FieldValueInvalid", "Invalid value: must be base64", f"{path}[{key}]")


def _check_frozen(new: Object, old: Object, fields: tuple[str, ...]) -> Iterator[Cause]:
    """What was marked immutable stays, the mark included."""
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", FROZEN)
    for field in fields:
        if (new.get(field) or {}) != (old.get(field) or {}):
            yield forbidden(field, FROZEN)
