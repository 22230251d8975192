"""Why a job failed or waits, as one cell of a list says it: the cause first, and no more."""

from __future__ import annotations

import re

# A message begins with a capital letter; those of earlier versions said it at length.
_EXITED = re.compile(r"\b(?:[Ee]xited with code|Exit) (?=\d)")
_SENTENCE = re.compile(r"(?<=[^.]\.)\s")


def parted(name: str, message: str) -> tuple[str, str]:
    """Return the cause out of the message of a job's state, `exit 1 · worker-0, worker-3`, and the rest of the message.

    The cause is its first sentence, in which pods are called as their job calls them.
    """
    cause, *rest = _SENTENCE.split(without_name(name, message), maxsplit=1)
    return _EXITED.sub("exit ", cause).removesuffix("."), "".join(rest)


def without_name(name: str, message: str) -> str:
    """Return a message in which the pods of the job of this name are called by task and number alone."""
    return re.sub(rf"(?<![\w.-]){re.escape(name)}-(?=[a-z0-9])", "", message)
