"""Request bodies: JSON, YAML or protobuf, turned into plain JSON objects (reference: kubernetes-api §4.4).

A body is bounded in bytes by `request.Request.body`; here its depth, and what
YAML aliases make of it, are bounded too. Duplicate fields are noted, not
refused: `fieldValidation` decides what becomes of them.
"""

from __future__ import annotations

import json
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
MOST_VALUES = 500_000  # that a YAML document may stand for once its aliases are written out
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
    try:
        value = _decode_json(body)
        # The fast decoder lets the last of two equal keys win without a word; this one sees them.
        pairs = json.loads(body, object_pairs_hook=_Pairs.of)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise BadRequest(f"couldn't get version/kind; json parse error: {error}") from None
    return Decoded(value, tuple(_duplicates(pairs)))


class _Pairs(dict[str, Any]):
    """An object of a JSON text in which a key came twice."""

    twice: tuple[str, ...] = ()

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        plain = dict(pairs)
        if len(plain) == len(pairs):
            return plain
        found = cls(plain)
        seen: set[str] = set()
        found.twice = tuple(dict.fromkeys(k for k, _ in pairs if k in seen or seen.add(k)))  # type: ignore[func-returns-value]
        return found


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


class _Loader(yaml.CSafeLoader):
    """YAML as Kubernetes reads it: times stay texts, and duplicate keys are noted."""

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self.duplicates: list[str] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    self.duplicates.append(key.value)
                seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in rules if tag != "tag:yaml.org,2002:timestamp"]
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def from_yaml(body: bytes) -> Decoded:
    """Read one YAML document."""
    loader = None
    try:
        loader = _Loader(body)
        value = loader.get_single_data()
        _check_size(value)
        # Through JSON, so that keys are texts and nothing is shared between two places.
        value = _decode_json(msgspec.json.encode(value))
    except (yaml.YAMLError, msgspec.DecodeError, RecursionError, TypeError, ValueError) as error:
        raise BadRequest(f"error converting YAML to JSON: {_one_line(error)}") from None
    finally:
        if loader is not None:
            loader.dispose()
    return Decoded(value, tuple(dict.fromkeys(loader.duplicates)))


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:500]


def _check_size(value: Any) -> None:
    """Raise ValueError when a document stands for too many values, or for itself."""
    sizes: dict[int, int] = {}

    def size(item: Any) -> int:
        if not isinstance(item, dict | list):
            return 1
        known = sizes.get(id(item))
        if known == 0:
            raise ValueError("an alias stands for something that contains it")
        if known is None:
            sizes[id(item)] = 0
            items = item.values() if isinstance(item, dict) else item
            known = sizes[id(item)] = 1 + sum(map(size, items))
            if known > MOST_VALUES:
                raise ValueError(f"with its aliases written out the document has over {MOST_VALUES} values")
        return known

    size(value)
