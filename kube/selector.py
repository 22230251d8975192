"""Selectors: which objects are meant, by their labels or by their fields.

Grammar and meaning are Kubernetes' (reference: kubernetes-api §2.2): a comma is
"and"; `!=` and `notin` also select objects that lack the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kube import names
from kube.meta import Object

Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
LONGEST = 16_384  # characters; a URL is not longer

_SET_OPERATORS: dict[str, Operator] = {"in": "In", "notin": "NotIn"}
_WORDS: dict[str, Operator] = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)\s*")
_FIELD_TERM = re.compile(r"((?:\\.|[^\\,=!])*)(!=|==|=)((?:\\.|[^\\,=])*)", re.DOTALL)
_FIELD_SPLIT = re.compile(r"(?:\\.|[^\\,])+", re.DOTALL)
_OPEN_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)


class SelectorError(ValueError):
    """The text or object is not a selector; the message says why."""


@dataclass(frozen=True)
class Requirement:
    """One condition on one label."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether the labels meet the condition."""
        return _MATCH[self.operator](labels.get(self.key), self.values)

    def __str__(self) -> str:
        if self.operator in ("Exists", "DoesNotExist"):
            return self.key if self.operator == "Exists" else f"!{self.key}"
        listed = ",".join(sorted(self.values))
        if self.operator in ("Gt", "Lt"):
            return f"{self.key}{'>' if self.operator == 'Gt' else '<'}{listed}"
        if len(self.values) == 1:
            return f"{self.key}{'=' if self.operator == 'In' else '!='}{listed}"
        return f"{self.key} {self.operator.lower()} ({listed})"


@dataclass(frozen=True)
class LabelSelector:
    """Conditions that must all hold; without any it selects everything, unless it is `nothing`."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether an object with these labels is selected."""
        present = labels or {}
        return not self.nothing and all(requirement.matches(present) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


@dataclass(frozen=True)
class FieldSelector:
    """Conditions on fields, as (path, is or is not, value)."""

    terms: tuple[tuple[str, bool, str], ...] = ()

    def matches(self, obj: Object) -> bool:
        """Whether the object is selected; a field that is absent reads as empty."""
        return all((field_text(obj, path) == value) is equal for path, equal, value in self.terms)

    def __str__(self) -> str:
        return ",".join(f"{path}{'=' if equal else '!='}{_escape(value)}" for path, equal, value in self.terms)


def parse_labels(text: str) -> LabelSelector:
    """Read a label selector such as `app=web,tier in (a, b),!canary`."""
    if len(text) > LONGEST:
        raise SelectorError(f"The selector is longer than {LONGEST} characters.")
    tokens = _Tokens(text)
    requirements = []
    while tokens.peek():
        requirements.append(_requirement(tokens))
        if tokens.peek() and tokens.take() != ",":
            raise tokens.error("a comma")
        if not tokens.peek() and tokens.last == ",":
            raise tokens.error("another condition")
    return LabelSelector(tuple(requirements))


def from_object(selector: Mapping[str, Any] | None) -> LabelSelector:
    """Read the `labelSelector` of an object; none at all selects nothing, an empty one everything."""
    if selector is None:
        return LabelSelector(nothing=True)
    if not isinstance(selector, Mapping) or not isinstance(labels := selector.get("matchLabels") or {}, Mapping):
        raise SelectorError("A label selector is an object with matchLabels and matchExpressions.")
    equal = tuple(_checked(str(key), "In", [value]) for key, value in labels.items())
    expressions = requirements(
        selector.get("matchExpressions") or (), allowed=("In", "NotIn", "Exists", "DoesNotExist")
    )
    return LabelSelector(equal + expressions.requirements)


def requirements(
    expressions: Iterable[Mapping[str, Any]], *, allowed: tuple[str, ...] = get_args(Operator)
) -> LabelSelector:
    """Read a list of {key, operator, values}, as node affinity has it (with Gt and Lt)."""
    if not isinstance(expressions, list | tuple):
        raise SelectorError("The expressions of a selector are a list.")
    found = []
    for expression in expressions:
        if not isinstance(expression, Mapping) or not isinstance(values := expression.get("values") or [], list):
            raise SelectorError("An expression is an object with key, operator and values.")
        operator: Any = expression.get("operator")
        if operator not in allowed:
            raise SelectorError(f"{operator!r} is not an operator; use one of {', '.join(allowed)}.")
        found.append(_checked(str(expression.get("key") or ""), operator, values))
    return LabelSelector(tuple(found))


def parse_fields(text: str) -> FieldSelector:
    r"""Read a field selector such as `status.phase!=Running,metadata.name=a`; `\,` and `\=` escape."""
    if len(text) > LONGEST:
        raise SelectorError(f"The selector is longer than {LONGEST} characters.")
    if _OPEN_ESCAPE.search(text):
        raise SelectorError(f"invalid selector: {text[:200]!r}; a backslash at the end escapes nothing")
    terms = []
    for part in _FIELD_SPLIT.findall(text):
        match = _FIELD_TERM.fullmatch(part)
        if match is None or not match[1].strip():
            raise SelectorError(f"invalid selector: {part[:200]!r}; can't understand it, write path=value")
        terms.append((_unescape(match[1]).strip(), match[2] != "!=", _unescape(match[3])))
    return FieldSelector(tuple(terms))


def field_text(obj: Object, path: str) -> str:
    """Return a field's value as field selectors compare it; empty where it is absent."""
    value: Any = obj
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


class _Tokens:
    """The words and signs of a label selector, one after the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = _TOKEN.findall(text)
        self.position = 0
        self.last = ""

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        self.last = self.peek()
        self.position += 1
        return self.last

    def word(self) -> str:
        """Take the next token if it is a word; an empty text stands for a missing value."""
        token = self.peek()
        return "" if token in ("", ",", ")", "(", "=", "==", "!=", "!", "<", ">") else self.take()

    def error(self, expected: str) -> SelectorError:
        found = f"found {self.last!r}" if self.last else "it ends there"
        return SelectorError(f"unable to parse requirement: {self.text[:200]!r}: {found}, expected {expected}")


def _requirement(tokens: _Tokens) -> Requirement:
    if tokens.peek() == "!":
        tokens.take()
        return _checked(tokens.word(), "DoesNotExist", [])
    key = tokens.word()
    sign = tokens.peek()
    if sign in ("", ","):
        return _checked(key, "Exists", [])
    tokens.take()
    if sign in _SET_OPERATORS:
        return _checked(key, _SET_OPERATORS[sign], _set(tokens))
    if sign not in _WORDS:
        raise tokens.error("one of = == != in notin > <")
    return _checked(key, _WORDS[sign], [tokens.word()])


def _set(tokens: _Tokens) -> list[str]:
    if tokens.take() != "(":
        raise tokens.error("'('")
    values = [tokens.word()]
    while (sign := tokens.take()) == ",":
        values.append(tokens.word())
    if sign != ")":
        raise tokens.error("',' or ')'")
    return values


def _checked(key: str, operator: Operator, values: list[Any]) -> Requirement:
    if wrong := names.qualified_name(key):
        raise SelectorError(f"key: Invalid value: {key[:200]!r}: {wrong}")
    if operator in ("Exists", "DoesNotExist") and values:
        raise SelectorError(f"values must be empty for {operator} of {key}")
    if operator in ("In", "NotIn") and not values:
        raise SelectorError(f"for {operator} of {key}, values must not be empty")
    if operator in ("Gt", "Lt") and not (len(values) == 1 and _INTEGER.fullmatch(str(values[0]))):
        raise SelectorError(f"for {operator} of {key}, exactly one value is required, and it must be an integer")
    for value in values:
        wrong = names.label_value(value) if isinstance(value, str) else "must be a text"
        if wrong and operator not in ("Gt", "Lt"):
            raise SelectorError(f"values of {key}: Invalid value: {str(value)[:200]!r}: {wrong}")
    return Requirement(key, operator, frozenset(map(str, values)))


def _compare(value: str | None, values: frozenset[str], sign: int) -> bool:
    if value is None or not _INTEGER.fullmatch(value):
        return False
    (bound,) = values
    return (int(value) - int(bound)) * sign > 0


_MATCH: dict[Operator, Callable[[str | None, frozenset[str]], bool]] = {
    "In": lambda value, values: value in values,
    "NotIn": lambda value, values: value not in values,
    "Exists": lambda value, values: value is not None,
    "DoesNotExist": lambda value, values: value is None,
    "Gt": lambda value, values: _compare(value, values, 1),
    "Lt": lambda value, values: _compare(value, values, -1),
}


def _escape(text: str) -> str:
    return re.sub(r"([\\,=])", r"\\\1", text)


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)
