"""The arguments of a plugin as Volcano reads them: numbers may be strings; what cannot be read gets its default."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kube.meta import duration_text, parse_duration
from kube.yaml.tree import child
from scheduler.policy.findings import nearest, quoted
from scheduler.policy.supported import Plugin

LARGEST_WEIGHT = 1_000_000
LARGEST_FACTOR = 1000
LONGEST_MS = 100 * 365 * 24 * 3_600_000
PACKED = "binpack"
PACKED_HYPER_NODES = "hypernode.binpack"
NEVER = "never"
_TRUTHS = {"true": True, "false": False, "1": True, "0": False, "t": True, "f": False}


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of one plugin. warn is called with the path and what is wrong."""

    values: Mapping[str, Any]
    path: str
    warn: Callable[[str, str], None]

    def check(self, plugin: Plugin) -> None:
        """Warn of arguments that have no effect."""
        for name in self.values:
            if name in plugin.supported or (plugin.prefix and name.startswith(plugin.prefix)):
                continue
            where = child(self.path, name)
            if name in plugin.without_effect:
                self.warn(where, f"{name} has no effect here.")
            else:
                hint = nearest(name, plugin.supported | plugin.without_effect)
                self.warn(where, f"There is no argument {quoted(name)}, so this is left out.{hint}")

    def weight(self, name: str, default: int) -> int:
        """Return a weight: a whole number from 0 to LARGEST_WEIGHT."""
        value = self.values.get(name, default)
        try:
            number = value if isinstance(value, int) and not isinstance(value, bool) else int(_text(value))
        except ValueError:
            number = -1
        if 0 <= number <= LARGEST_WEIGHT:
            return number
        rule = f"a whole number from 0 to {LARGEST_WEIGHT:,}"
        self.warn(child(self.path, name), f"{name} is {rule}, not {quoted(value)}; {default} is used.")
        return default

    def thousandths(self, name: str, default: int) -> int:
        """Return a factor of at least 1, in thousandths as default is."""
        value = self.values.get(name, default / 1000)
        number = _number(value)
        if 1 <= number <= LARGEST_FACTOR:
            return round(number * 1000)
        rule = f"a number from 1 to {LARGEST_FACTOR:,}"
        self.warn(child(self.path, name), f"{name} is {rule}, not {quoted(value)}; {default / 1000:g} is used.")
        return default

    def amount(self, name: str, unit: int) -> int:
        """Return a number from 0 to LARGEST_WEIGHT, times `unit`; 0 for what cannot be read."""
        value = self.values.get(name, 0)
        number = _number(value)
        if 0 <= number <= LARGEST_WEIGHT:
            return round(number * unit)
        rule = f"a number from 0 to {LARGEST_WEIGHT:,}"
        self.warn(child(self.path, name), f"{name} is {rule}, not {quoted(value)}; it is left out.")
        return 0

    def part(self, name: str, default: float) -> float:
        """Return a number from 0 to 1."""
        value = self.values.get(name, default)
        number = _number(value)
        if 0 <= number <= 1:
            return number
        rule = "a number from 0 to 1"
        self.warn(child(self.path, name), f"{name} is {rule}, not {quoted(value)}; {default:g} is used.")
        return default

    def percentage(self, name: str, default: int) -> int:
        """Return a whole number from 1 to 100."""
        value = self.values.get(name, default)
        try:
            number = value if isinstance(value, int) and value is not True else int(_text(value))
        except ValueError:
            number = 0
        if 1 <= number <= 100:
            return number
        rule = "a percentage, a whole number from 1 to 100"
        self.warn(child(self.path, name), f"{name} is {rule}, not {quoted(value)}; {default} is used.")
        return default

    def within(self, name: str) -> Arguments:
        """Return the arguments in a mapping among these; none where it is absent or not a mapping."""
        value = self.values.get(name)
        if value is not None and not isinstance(value, dict):
            self.warn(child(self.path, name), f"{name} is a mapping, not {quoted(value)}; it is left out.")
        return Arguments(value if isinstance(value, dict) else {}, child(self.path, name), self.warn)

    def truth(self, name: str, *, default: bool) -> bool:
        """Return a boolean."""
        value = self.values.get(name, default)
        if isinstance(value, bool):
            return value
        try:
            return _TRUTHS[_text(value).lower()]
        except (ValueError, KeyError):
            rule = "true or false"
            self.warn(child(self.path, name), f"{name} is {rule}, not {quoted(value)}; {str(default).lower()} is used.")
        return default

    def wait(self, name: str, default: str | None = None) -> int | None:
        """Return a duration above 0 in ms; None where there is none, or it cannot be read."""
        value = self.values.get(name, default)
        if value is None:
            return None
        duration = duration_of(value)
        if duration is None:
            self.warn(
                child(self.path, name),
                f"{name} is a duration such as 30m or 1h30m, not {quoted(value)}; {default or 'none'} is used.",
            )
        return duration

    def wait_or_never(self, name: str, default: int) -> int | None:
        """Return a duration above 0 in ms; None for `never`."""
        value = self.values.get(name)
        if value is None:
            return default
        if value == NEVER:
            return None
        duration = duration_of(value)
        if duration is None:
            rule = f"a duration such as 30m or 1h30m, or {NEVER}"
            used = duration_text(default)
            self.warn(child(self.path, name), f"{name} is {rule}, not {quoted(value)}; {used} is used.")
        return duration or default

    def wait_or_zero(self, name: str, default: int) -> int:
        """Return a duration in ms, which may be 0."""
        value = self.values.get(name, default)
        if name not in self.values or value is None:
            return default
        duration = 0 if _is_zero(value) else duration_of(value)
        if duration is None:
            rule, used = "a duration such as 5m or 1h30m, or 0", duration_text(default)
            self.warn(child(self.path, name), f"{name} is {rule}, not {quoted(value)}; {used} is used.")
        return default if duration is None else duration

    def names(self, name: str) -> tuple[str, ...]:
        """Return the names in a comma-separated string, each once."""
        stated = self.values.get(name, "")
        if not isinstance(stated, str):
            message = f"{name} names resources, separated by commas, and is not {quoted(stated)}."
            self.warn(child(self.path, name), message)
            return ()
        return tuple(dict.fromkeys(filter(None, (each.strip() for each in stated.split(",")))))

    def packed(self, first: str = PACKED) -> tuple[tuple[str, int], ...]:
        """Return the resources by which nodes (§3.9), or HyperNodes (§3.12), are compared, with their weights, sorted by name.

        first is the prefix of the names of these arguments.
        """
        weights = {name: self.weight(f"{first}.{name}", 1) for name in ("cpu", "memory")}
        listed, prefix = f"{first}.resources", f"{first}.resources."
        for name in self.names(listed):
            weights[name] = self.weight(prefix + name, 1)
        for name in self.values:
            if name.startswith(prefix) and name.removeprefix(prefix) not in weights:
                self.warn(child(self.path, name), f"{name} has no effect: {listed} does not name it.")
        return tuple(sorted(weights.items()))


def duration_of(value: object) -> int | None:
    """Return a Go duration in ms, a hundred years at most; None for anything else and for durations not above 0."""
    try:
        duration = parse_duration(_text(value))
    except ValueError:
        return None
    return min(duration, LONGEST_MS) if duration > 0 else None


def _is_zero(value: object) -> bool:
    """Tell whether a value is the number 0 or a duration of 0."""
    try:
        return (value == 0 and not isinstance(value, bool)) or parse_duration(_text(value)) == 0
    except ValueError:
        return False


def _number(value: Any) -> float:
    """Return a number, also one written as a string; NaN for any other value."""
    try:
        return float(value) if isinstance(value, int | float) and value is not True else float(_text(value))
    except (ValueError, OverflowError):
        return math.nan


def _text(value: Any) -> str:
    """Return a short string, stripped; raise ValueError for anything else."""
    if not isinstance(value, str) or len(value) > 40:
        raise ValueError
    return value.strip()
