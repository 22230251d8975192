"""Why a pod group waits, as its status says it: in words and as data.

The message of the condition UNSCHEDULABLE is for people and for Volcano's tools: the sentence, then the text that Volcano writes.
Programs read the condition CAUSE, whose message is the `Cause` as JSON, with what `scheduler.reasons.sentence` needs to
make the sentence again. One cycle writes both with one transitionID: words that another scheduler has written since have no cause.
Once the minimum runs, CAUSE stands alone and says why pods beyond it have no node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from kube.volcano import pod_groups
from scheduler.engine.cause import Cause, Exclusion, Reason
from scheduler.reasons.sentence import NAMING_NODES, sentence

UNSCHEDULABLE = "Unschedulable"
CAUSE = f"{pod_groups.DATA}Cause"
OF_MISSING_PODS = (Reason.NOT_ENOUGH_TASKS, Reason.SCHEDULING_GATED)


class Condition(Protocol):
    """A condition of a pod group, in whichever view."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def transition_id(self) -> str: ...


def data(cause: Cause) -> str:
    """Return a cause as JSON for programs, without kube-scheduler's words, which are in Volcano's text."""
    named = cause.excluded if cause.reason in NAMING_NODES else ()
    excluded = tuple((nodes, Exclusion(each.kind, display=each.display)) for nodes, each in named)
    return msgspec.json.encode(msgspec.structs.replace(cause, tally=(), excluded=excluded)).decode()


def read(text: str) -> Cause | None:
    """Read what `data` wrote; None for anything else, such as a reason that a later version has."""
    try:
        return _causes.decode(text)
    except msgspec.DecodeError:
        return None


def data_of(conditions: Iterable[Condition]) -> str:
    """Return the message of CAUSE in the status of a pod group; "" where there is none, or UNSCHEDULABLE has another transitionID."""
    true = {each.type: each for each in conditions if each.status == "True"}
    found, words = true.get(CAUSE), true.get(UNSCHEDULABLE)
    if found is None or (words is not None and words.transition_id != found.transition_id):
        return ""
    return found.message


def cause_of(conditions: Iterable[Condition]) -> Cause | None:
    """Return why a pod group, or its pods beyond the minimum, wait; None where none do, or another scheduler says why."""
    text = data_of(conditions)
    return read(text) if text else None


def parted(message: str, cause: Cause | None) -> tuple[str, str]:
    """Split the message of UNSCHEDULABLE into the sentence for people and the text that Volcano writes.

    Without a cause the message is another scheduler's, and all of it is the sentence.
    """
    if cause is None:
        return message, ""
    text = sentence(cause)
    return text, message.removeprefix(text).lstrip()


def gist(cause: Cause) -> tuple[object, ...]:
    """Return the parts of a cause about its reason and the gang's own pods, without what changes whenever others start or end."""
    about = cause.arrangement
    return (
        *(cause.reason, cause.never, cause.started, cause.entering),
        *(cause.queue, cause.quota, cause.claim, cause.constraint, cause.victims, cause.keeping, cause.since),
        *(cause.needed, cause.gated, cause.fit if cause.started or cause.reason in OF_MISSING_PODS else None),
        cause.lacking and (cause.lacking.key, cause.lacking.values),
        about and (about.highest, about.tier_name, about.is_known, about.placed, about.wanted),
    )


_causes = msgspec.json.Decoder(Cause)
