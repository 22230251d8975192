"""The rules for names: of objects, labels and environment variables.

Each rule returns None for a text that follows it, and otherwise Kubernetes' own
sentence about what is wrong.
"""

from __future__ import annotations

import re
from random import Random

# Kubernetes' alphabet: no vowels, so that no words come up, and no 0, 1, 3, which look like letters.
SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
VALUE = rf"({QUALIFIED})?"
ENV = "[-._a-zA-Z][-._a-zA-Z0-9]*"

_LABEL = re.compile(LABEL)
_LABEL_1035 = re.compile(LABEL_1035)
_SUBDOMAIN = re.compile(SUBDOMAIN)
_QUALIFIED = re.compile(QUALIFIED)
_VALUE = re.compile(VALUE)
_ENV = re.compile(ENV)


def dns_label(text: str) -> str | None:
    """Check the name of a namespace, container, task or service (RFC 1123 label, 63 characters)."""
    if len(text) > 63:
        return "must be no more than 63 characters"
    if _LABEL.fullmatch(text):
        return None
    return (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
        f"end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{LABEL}')"
    )


def dns1035_label(text: str) -> str | None:
    """Check the name of a kind, a version or a port of old: a label that starts with a letter."""
    if len(text) > 63:
        return "must be no more than 63 bytes"
    if _LABEL_1035.fullmatch(text):
        return None
    return (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
        f"regex used for validation is '{LABEL_1035}')"
    )


def dns_subdomain(text: str) -> str | None:
    """Check the name of most objects (RFC 1123 subdomain, 253 characters)."""
    if len(text) > 253:
        return "must be no more than 253 characters"
    if _SUBDOMAIN.fullmatch(text):
        return None
    return (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
        "start and end with an alphanumeric character "
        f"(e.g. 'example.com', regex used for validation is '{SUBDOMAIN}')"
    )


def qualified_name(text: str) -> str | None:
    """Check the key of a label, annotation or resource: `name` or `prefix.example.com/name`."""
    prefix, slash, name = text.rpartition("/")
    if slash and not prefix:
        return "prefix part must be non-empty"
    if slash and (wrong := dns_subdomain(prefix)):
        return f"prefix part {wrong}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 characters"
    if _QUALIFIED.fullmatch(name):
        return None
    return (
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
        f"regex used for validation is '{QUALIFIED}')"
    )


def label_value(text: str) -> str | None:
    """Check the value of a label; it may be empty."""
    if len(text) > 63:
        return "must be no more than 63 characters"
    if _VALUE.fullmatch(text):
        return None
    return (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
        "start and end with an alphanumeric character "
        f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{VALUE}')"
    )


def env_name(text: str) -> str | None:
    """Check the name of an environment variable."""
    if text in (".", "..") or text.startswith("..") or not _ENV.fullmatch(text):
        return (
            "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and "
            f"must not start with a digit (e.g. 'my.env-name',  or 'MY_ENV.NAME',  or 'MyEnvName1', "
            f"regex used for validation is '{ENV}')"
        )
    return None


def suffix(random: Random) -> str:
    """Return the five characters that make a generated name unique."""
    return "".join(random.choice(SUFFIX_ALPHABET) for _ in range(5))
