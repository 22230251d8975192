"""Bodies in protobuf: those that client-go 0.34 wrote, beside the JSON that it writes of the same object, and odd ones."""

import json
import struct
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from kube import errors, protobuf, resources
from kube.protobuf import tables
from tests.tables import at, cases, parts

GOLDEN = sorted((Path(__file__).parent / "golden").glob("*.pb"))


def varint(number):
    number &= 0xFFFF_FFFF_FFFF_FFFF
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*written, number])


def field(number, value):
    """A field: an int as a varint, a float as a double, text and bytes with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def body(api_version, kind, raw):
    return b"k8s\x00" + message((1, message((1, api_version), (2, kind))), (2, raw), (3, ""), (4, ""))


def read(kind, *fields, api_version="v1"):
    return protobuf.decode(body(api_version, kind, message(*fields)))


def without_nulls(value):
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_body_reads_as_the_json_of_the_same_client(path):
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert protobuf.decode(path.read_bytes()) == without_nulls(expected)


def test_every_built_in_kind_can_be_read_also_when_it_is_empty():
    assert len(GOLDEN) > 20
    # Nothing of Volcano is in client-go: only clients without protobuf write its kinds.
    ours = [each for each in resources.served() if each.stored and each.schema is None]
    served = {(each.api_version, each.kind) for each in ours if not each.group.endswith(".volcano.sh")}
    assert served <= tables.KINDS.keys()
    for version, kind in tables.KINDS:
        version = version.replace("*", "v1")
        assert read(kind, api_version=version) == {"apiVersion": version, "kind": kind}
    empty = {message.name for message in tables.MESSAGES.values() if not message.fields}
    assert empty == {"apiextensions.CustomResourceSubresourceStatus"}


@cases("damaged, detail", {
    "empty": (b"", "does not appear to be a protobuf message"),
    "JSON": (b'{"kind":"Pod"}', "does not appear to be a protobuf message"),
    "no envelope": (b"k8s\x00", "Object 'Kind' is missing"),
    "no kind": (body("v1", "", b""), "Object 'Kind' is missing"),
    "no version": (body("", "Pod", b""), "Object 'apiVersion' is missing"),
    "no length": (body("v1", "Pod", b"\x0a"), "end within a number"),
    "too short": (body("v1", "Pod", b"\x0a\x05"), "end within a field"),
    "endless number": (body("v1", "Pod", b"\x80" * 12), "longer than 64 bits"),
    "field nought": (body("v1", "Pod", b"\x02\x00"), "no field 0"),
    "number for a message": (body("v1", "Pod", field(1, 7)), "wire type 0 instead of 2"),
    "bytes for a number": (body("v1", "Pod", field(1, field(7, b"\x01"))), "wire type 2 instead of 0"),
    "group": (body("v1", "Pod", varint(99 << 3 | 3)), "no wire type 3"),
    "no double": (body("v1", "Pod", varint(99 << 3 | 1)), "end within a field"),
    "map with a number for a key": (body("v1", "ConfigMap", field(2, field(1, 3))), "wire type"),
    "number for a map": (body("v1", "ConfigMap", field(2, 3)), "wire type"),
    "too large": (b"k8s\x00" + bytes(5 * 1024 * 1024), "at most"),
    "many messages": (body("v1", "Pod", field(2, field(2, b"") * 400_000)), "more than"),
    "many packed numbers": (body("v1", "Pod", field(2, field(14, field(4, b"\x01" * 400_000)))), "more than"),
    "many unknown fields": (body("v1", "Pod", field(900, 0) * 400_000), "more than"),
})  # fmt: skip
def test_what_is_no_message_is_a_bad_request(damaged, detail):
    with pytest.raises(errors.BadRequest, match=detail):
        protobuf.decode(damaged)


def test_a_kind_without_a_table_is_refused_and_delete_options_come_with_any_version():
    unknown = ("apps/v1", "Deployment"), ("v1", "Job"), ("batch.volcano.sh/v1alpha1", "Job"), ("x" * 99, "Pod")
    for version, kind in unknown:
        with pytest.raises(errors.UnsupportedMediaType, match=f"{kind} of"):
            read(kind, api_version=version)
    for version in ("v1", "batch/v1", "meta.k8s.io/v1"):
        found = read("DeleteOptions", (1, 0), (4, "Background"), api_version=version)
        assert (found["apiVersion"], found["gracePeriodSeconds"]) == (version, 0)
        assert found["propagationPolicy"] == "Background"


def written(value):
    """Return a value of a field as it is written: a list of pairs is a message, and bytes are in hexadecimal digits."""
    if isinstance(value, list):
        return message(*((number, written(each)) for number, each in value))
    return bytes.fromhex(value["hex"]) if isinstance(value, dict) else value


@parts("kube/protobuf", "fields")
def test_fields_of_messages(part):
    """Before the arrow stand a kind, a path in what is read, and the numbers and values of fields."""

    def read_at(text):
        version, kind, path, fields = text.split(" ", 3)
        try:
            return at(protobuf.decode(body(version, kind, written(yaml.safe_load(fields)))), path)
        except errors.BadRequest:
            return "refused"

    part.check(read_at)
    odd = varint(9 << 3 | 5) + b"1234"  # an unknown field of 32 bits
    assert protobuf.decode(body("v1", "Pod", odd + field(1, b"")))["metadata"] == {}
    with pytest.raises(errors.BadRequest, match="holds JSON"):
        read("Pod", (1, message((17, message((1, "m"), (7, message((1, b"[" * 100_000))))))))


def schema(raw):
    crd = (2, message((7, message((1, "v1"), (4, message((1, raw)))))))
    found = read("CustomResourceDefinition", crd, api_version="apiextensions.k8s.io/v1")
    return found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@parts("kube/protobuf", "schemas")
def test_schemas(part):
    def read_schema(text):
        try:
            return schema(written(yaml.safe_load(text)))
        except errors.BadRequest:
            return "refused"

    part.check(read_schema)
    assert repr(schema(message((9, 2.0)))) == "{'maximum': 2}"


def test_depth_is_bounded():
    def nested(depth):
        raw = b""
        for _ in range(depth):
            raw = message((28, raw))  # not
        return raw

    assert schema(nested(20))["not"]
    with pytest.raises(errors.BadRequest, match="nested deeper"):
        schema(nested(5000))


def never_anything_else(data):
    try:
        msgspec.json.encode(protobuf.decode(data))
    except (errors.BadRequest, errors.UnsupportedMediaType):
        pass


@given(st.sampled_from(sorted(tables.KINDS)), st.binary(max_size=200))
@example(("v1", "Pod"), b"\x0a\x00\x12\x00")
def test_no_bytes_raise_anything_but_the_two_errors(kind, raw):
    never_anything_else(body(kind[0], kind[1], raw))
    never_anything_else(b"k8s\x00" + raw)


changed_bytes = st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), min_size=1, max_size=6)


@given(st.sampled_from(GOLDEN), changed_bytes, st.integers(min_value=0))
def test_no_damaged_body_raises_anything_but_the_two_errors(path, changes, cut):
    damaged = bytearray(path.read_bytes())
    for position, byte in changes:
        damaged[position % len(damaged)] = byte
    never_anything_else(bytes(damaged))
    never_anything_else(bytes(damaged[: cut % len(damaged)]))
