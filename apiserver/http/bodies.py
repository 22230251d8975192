"""Request bodies: JSON, YAML or protobuf, turned into plain JSON objects (reference: kubernetes-api §4.4).

A body is bounded in bytes by `request.Request.body`; here its depth and the
number of its values are bounded too, in YAML with aliases and merge keys
written out. Both are counted before values are made of the text, because that
costs a hundred times as much. Duplicate fields are noted, not refused:
`fieldValidation` decides what becomes of them.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import yaml

from kube import protobuf
from kube.errors import BadRequest, UnsupportedMediaType, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kube.meta import Object

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
DECODABLE = (JSON, YAML, PROTOBUF)
MOST_VALUES = 50_000  # that a body may stand for; an object of the largest size has some 20,000
MOST_LEVELS = 128  # in each other; what walks an object takes a few frames for each
MOST_DUPLICATES = 50  # that are named
LONGEST_PLAIN = 100  # characters of a YAML scalar that may be something else than a text
TEXT_TAG = "tag:yaml.org,2002:str"
INT_TAG = "tag:yaml.org,2002:int"
FLOAT_TAG = "tag:yaml.org,2002:float"
MERGE_TAG = "tag:yaml.org,2002:merge"
TOO_MANY = f"there are more than {MOST_VALUES} values"
TOO_DEEP = f"values lie in each other more than {MOST_LEVELS} deep"
# What constructors of YAML raise for values that their tags do not fit.
FAILED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
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
        raise BadRequest(f"The body must be an object, not {shown(value)}.")
    return value


def from_json(body: bytes) -> Decoded:
    """Read JSON; numbers that are no numbers and texts that are no text are refused."""
    found: list[_Pairs] = []
    try:
        _check_text(body)
        value = _decode_json(body)
        if _check_size(value) == _texts(body):
            return Decoded(value)
        # The fast decoder lets the last of two equal keys win without a word; this one sees them.
        pairs = json.loads(body, object_pairs_hook=functools.partial(_Pairs.of, found))
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise BadRequest(f"couldn't get version/kind; json parse error: {_one_line(error)}") from None
    return Decoded(value, tuple(itertools.islice(_duplicates(pairs), MOST_DUPLICATES)))


def _check_text(body: bytes) -> None:
    """Raise ValueError when a JSON text has too many values: to decode a million of them holds up all threads."""
    if _signs(body) > MOST_VALUES and (
        _texts(body) > 2 * MOST_VALUES or _signs(_STRING.sub(b"", body)) > MOST_VALUES
    ):
        raise ValueError(TOO_MANY)


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
    def of(cls, found: list[_Pairs], pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        plain = dict(pairs)
        if len(plain) == len(pairs):
            return plain
        made = cls(plain)
        found.append(made)
        seen: set[str] = set()
        made.twice = tuple(dict.fromkeys(k for k, _ in pairs if k in seen or seen.add(k)))  # type: ignore[func-returns-value]
        return made


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
    for _ in range(MOST_LEVELS):
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
        if parts > MOST_VALUES:
            raise ValueError(TOO_MANY)
        if not below:
            return texts
        level = below
    raise ValueError(TOO_DEEP)


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: times and sexagesimals stay texts, and duplicate keys are noted."""

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self.duplicates: list[str] = []
        self._merged = 0
        self._level = 0

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: Any) -> str:
        # Long digits take time to become a number, and "1:30" is one only in YAML 1.1.
        if kind is yaml.ScalarNode and value is not None and (len(value) > LONGEST_PLAIN or ":" in value):
            return TEXT_TAG
        return str(super().resolve(kind, value, implicit))  # type: ignore[no-untyped-call]

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, value in list(node.value):
            if key.tag == MERGE_TAG:
                for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(source, yaml.MappingNode):
                        self._flatten_source(source)
        super().flatten_mapping(node)

    def _flatten_source(self, source: yaml.MappingNode) -> None:
        self._level += 1
        if self._level > MOST_LEVELS:
            raise ValueError("a merge key stands for something that contains it")
        self.flatten_mapping(source)
        self._level -= 1
        self._merged += len(source.value)
        if self._merged > MOST_VALUES:
            raise ValueError(TOO_MANY)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != MERGE_TAG:
                if key.value in seen and len(self.duplicates) < MOST_DUPLICATES:
                    self.duplicates.append(key.value)
                seen.add(key.value)
        return super().construct_mapping(node, deep)

    def number(self, node: yaml.ScalarNode) -> int | float:
        """Read a number, also one that is tagged as such."""
        if len(node.value) > LONGEST_PLAIN or ":" in node.value:
            raise ValueError(f"{shown(node.value[:LONGEST_PLAIN])} is not a number")
        found = self.construct_yaml_int(node) if node.tag == INT_TAG else self.construct_yaml_float(node)
        if not math.isfinite(found):
            raise ValueError(f"json: unsupported value: {node.value}")
        return found


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_constructor(INT_TAG, _Loader.number)
_Loader.add_constructor(FLOAT_TAG, _Loader.number)


def from_yaml(body: bytes) -> Decoded:
    """Read one YAML document. One that is JSON too, as most programs send it, is read as that."""
    if body.lstrip()[:1] == b"{":
        with contextlib.suppress(BadRequest):
            return from_json(body)
    loader = None
    try:
        _check_events(body)
        loader = _Loader(body)
        value = loader.get_single_data()
        _check_shared(value)
        # Through JSON, so that keys are texts and nothing is shared between two places.
        value = _decode_json(msgspec.json.encode(value))
    except (yaml.YAMLError, msgspec.DecodeError, RecursionError, *FAILED) as error:
        raise BadRequest(f"error converting YAML to JSON: {_one_line(error)}") from None
    finally:
        if loader is not None:
            loader.dispose()
    return Decoded(value, tuple(dict.fromkeys(loader.duplicates)))


def _check_events(body: bytes) -> None:
    """Raise ValueError when a YAML text has too many values or levels; too many of these would end the process."""
    parser = yaml.CSafeLoader(body)
    nodes = level = 0
    while (event := parser.get_event()) is not None:
        kind = type(event)
        if kind is yaml.ScalarEvent or kind is yaml.AliasEvent:
            nodes += 1
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            nodes += 1
            level += 1
            if level > MOST_LEVELS:
                raise ValueError(TOO_DEEP)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            level -= 1
        if nodes > 2 * MOST_VALUES:  # keys are nodes too
            raise ValueError(TOO_MANY)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:500]


def _check_shared(value: Any) -> None:
    """Raise ValueError when a document stands for too many values, or for itself; long texts count as several."""
    sizes: dict[int, int] = {}

    def size(item: Any) -> int:
        if isinstance(item, str | bytes):
            return 1 + len(item) // LONGEST_PLAIN
        if not isinstance(item, dict | list):
            return 1
        known = sizes.get(id(item))
        if known == 0:
            raise ValueError("an alias stands for something that contains it")
        if known is None:
            sizes[id(item)] = 0
            keys = sum(size(key) - 1 for key in item) if isinstance(item, dict) else 0
            items = item.values() if isinstance(item, dict) else item
            known = sizes[id(item)] = 1 + keys + sum(map(size, items))
            if known > MOST_VALUES:
                raise ValueError(f"with its aliases written out the document has over {MOST_VALUES} values")
        return known

    size(value)
