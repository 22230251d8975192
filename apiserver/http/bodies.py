"""Request bodies: JSON, YAML or protobuf, turned into plain JSON objects (reference: kubernetes-api §4.4).

A body is bounded in bytes by `request.Request.body`; here its depth and the
number of its values are bounded too, by the same bounds in JSON and in YAML
(`kube.yaml.tree`). In JSON they are counted before values are made of the
text, because that costs a hundred times as much. Duplicate fields are noted,
not refused: `fieldValidation` decides what becomes of them.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import yaml

from kube import protobuf
from kube.errors import BadRequest, UnsupportedMediaType, quoted
from kube.meta import Object
from kube.yaml.problem import Problem, YamlError, from_parser
from kube.yaml.tree import MAX_DUPLICATES, MAX_LEVELS, MAX_VALUES, trees

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
DECODABLE = (JSON, YAML, PROTOBUF)
TOO_MANY = f"there are more than {MAX_VALUES} values"
TOO_DEEP = f"values lie in each other more than {MAX_LEVELS} deep"
# Possessive, and its end may be missing: so no text makes it look at a character twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_decode_json = msgspec.json.Decoder().decode


class Decoded(NamedTuple):
    """A body's value and the paths of fields that it gives twice."""

    value: Any
    duplicates: tuple[str, ...] = ()


def media_type(header: str) -> str:
    """Return a Content-Type without its parameters; JSON when there is none."""
    return header.partition(";")[0].strip().lower() or JSON


def decode(content_type: str, body: bytes) -> Decoded:
    """Read a body by its media type; BadRequest when it is broken, UnsupportedMediaType for another type."""
    if content_type == JSON:
        return from_json(body)
    if content_type == YAML:
        return from_yaml(body)
    if content_type == PROTOBUF:
        return Decoded(protobuf.decode(body))
    raise UnsupportedMediaType.of(DECODABLE)


def as_object(value: Any) -> Object:
    """Return a decoded value that must be an object."""
    if not isinstance(value, dict):
        raise BadRequest(f"The body must be an object, not {quoted(value)}.")
    return value


def from_json(body: bytes) -> Decoded:
    """Read JSON; numbers that are no numbers and texts that are no text are refused."""
    collected: list[_Pairs] = []
    try:
        # To decode a million values would hold up all threads.
        if _signs(body) > MAX_VALUES and (_texts(body) > 2 * MAX_VALUES or _signs(_STRING.sub(b"", body)) > MAX_VALUES):
            raise ValueError(TOO_MANY)
        value = _decode_json(body)
        if _check_size(value) == _texts(body):
            return Decoded(value)
        # The fast decoder lets the last of two equal keys win without a word; this one sees them.
        pairs = json.loads(body, object_pairs_hook=functools.partial(_Pairs.of, collected))
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        problem = " ".join(str(error).split())[:500]
        raise BadRequest(f"couldn't get version/kind; json parse error: {problem}") from None
    return Decoded(value, tuple(itertools.islice(_duplicates(pairs), MAX_DUPLICATES)))


def _signs(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def _texts(body: bytes) -> int:
    """Return how many texts are in a JSON text, keys among them."""
    if b"\\" in body:
        body = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return body.count(b'"') // 2


class _Pairs(dict[str, Any]):
    """An object of a JSON text in which a key came twice."""

    twice: tuple[str, ...] = ()

    @classmethod
    def of(cls, collected: list[_Pairs], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        plain = dict(pairs)
        if len(plain) == len(pairs):
            return plain
        instance = cls(plain)
        collected.append(instance)
        seen: set[str] = set()
        instance.twice = tuple(dict.fromkeys(k for k, _ in pairs if k in seen or seen.add(k)))  # type: ignore[func-returns-value]
        return instance


def _duplicates(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value, _Pairs):
            yield from (f"{path}.{key}".lstrip(".") for key in value.twice)
        for key, item in value.items():
            if isinstance(item, dict | list):
                yield from _duplicates(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                yield from _duplicates(item, f"{path}[{index}]")


def _check_size(value: Any) -> int:
    """Return how many texts a value has, keys among them; nothing in it may be shared.

    ValueError when it has too many parts or levels.
    """
    parts, texts, level = 0, 0, [value]
    for _ in range(MAX_LEVELS):
        below: list[Any] = []
        for item in level:
            if type(item) is dict:
                texts += len(item)
                below += item.values()
            elif type(item) is list:
                below += item
            elif type(item) is str:
                texts += 1
        parts += len(below)
        if parts > MAX_VALUES:
            raise ValueError(TOO_MANY)
        if not below:
            return texts
        level = below
    raise ValueError(TOO_DEEP)


def from_yaml(body: bytes) -> Decoded:
    """Read one YAML document. One that is JSON too, as most programs send it, is read as that."""
    if body.lstrip()[:1] == b"{":
        with contextlib.suppress(BadRequest):
            return from_json(body)
    try:
        documents = list(itertools.islice(trees(body), 2))
    except yaml.YAMLError as error:
        raise _no_yaml(from_parser(error, body.decode(errors="replace"))) from None
    except YamlError as error:
        raise _no_yaml(error.problems[0]) from None
    if not documents:
        return Decoded(None)
    if len(documents) > 1:
        raise _no_yaml(Problem("A request holds one document; this one goes on after ---.", documents[1].line))
    if problems := documents[0].problems:
        raise _no_yaml(problems[0])
    return Decoded(documents[0].value, tuple(problem.field for problem in documents[0].duplicates))


def _no_yaml(problem: Problem) -> BadRequest:
    line = f"yaml: line {problem.line}: " if problem.line else "yaml: "
    return BadRequest(f"error converting YAML to JSON: {line}{problem.message}"[:500])
