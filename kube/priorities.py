"""What a priority class is worth: one rule for everybody who needs the priority of a job, a pod group or a pod.

* Who names a class has its value.
* Who names none, or one that does not exist, has the value of the global default. Of several defaults, which a race may
  leave, the lowest counts, as in Kubernetes' admission; of equals the first by name.
* Without a default the value is 0.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from kube.kinds.fields import View
from kube.meta import Object

NEVER = "Never"
"""The preemptionPolicy of those for whom nobody is evicted."""


class PriorityClass(NamedTuple):
    """A class of priority. preempts: pods of lower priority may be evicted for those of this class."""

    name: str
    value: int
    is_default: bool = False
    preempts: bool = True


NO_CLASS = PriorityClass("", 0)


def default_of(classes: Iterable[PriorityClass]) -> PriorityClass:
    """Return the class of those who name none; NO_CLASS where no class is the default."""
    marked = (each for each in classes if each.is_default)
    return min(marked, key=lambda each: (each.value, each.name), default=NO_CLASS)


class PriorityClasses:
    """The priority classes of a cluster, kept up to date one by one."""

    def __init__(self, *classes: PriorityClass) -> None:
        self._classes: dict[str, PriorityClass] = {each.name: each for each in classes}
        self.default = default_of(classes)

    def put(self, name: str, body: bytes | None) -> None:
        """Take over a stored class; None when it is gone. One that cannot be read counts as gone."""
        before, after = self._classes.pop(name, NO_CLASS), NO_CLASS
        if body is not None:
            with contextlib.suppress(msgspec.ValidationError):
                after = self._classes[name] = _of(_decode(body))
        if before.is_default or after.is_default:
            self.default = default_of(self._classes.values())

    def find(self, name: str) -> PriorityClass:
        """Return the class of those who name this one, which may not exist, or none ("")."""
        return self._classes.get(name, self.default)

    def value(self, name: str) -> int:
        """Return the priority of those who name this class, which may not exist, or none ("")."""
        return self.find(name).value


class _Metadata(View):
    name: str = ""


class _PriorityClass(View):
    metadata: _Metadata = _Metadata()
    value: int | None = None
    global_default: bool | None = None
    preemption_policy: str | None = None


def read(obj: Object) -> PriorityClass:
    """Return a class from its object; ValidationError when it cannot be read."""
    return _of(msgspec.convert(obj, _PriorityClass))


def _of(view: _PriorityClass) -> PriorityClass:
    preempts = view.preemption_policy != NEVER
    return PriorityClass(view.metadata.name, view.value or 0, bool(view.global_default), preempts)


_decode = msgspec.json.Decoder(_PriorityClass).decode
