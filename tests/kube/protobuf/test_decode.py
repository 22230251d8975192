from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kube import errors, protobuf, resources
from kube.protobuf import tables
from tests.kube.protobuf.writing import body, field, message, varint
from tests.tables import cases

GOLDEN = [path.read_bytes() for path in sorted((Path(__file__).parent / "golden").glob("*.pb"))]


def pod(*fields):
    return protobuf.decode(body("v1", "Pod", message(*fields)))


def config_map(*fields):
    return protobuf.decode(body("v1", "ConfigMap", message(*fields)))


@pytest.mark.parametrize("kind", tables.KINDS, ids=lambda kind: "/".join(kind))
def test_an_empty_message_of_every_kind_reads(kind):
    api_version = kind[0].replace("*", "v1")
    assert protobuf.decode(body(api_version, kind[1], b"")) == {"apiVersion": api_version, "kind": kind[1]}


def test_every_message_in_the_table_has_fields():
    empty = {message.name for message in tables.MESSAGES.values() if not message.fields}
    assert empty == {"apiextensions.CustomResourceSubresourceStatus"}


# Kinds that only clients without protobuf write: nothing of Volcano is in client-go.
def test_every_built_in_kind_can_be_read():
    served = {
        (resource.api_version, resource.kind)
        for resource in resources.served()
        if resource.stored and not resource.group.endswith(".volcano.sh") and resource.schema is None
    }
    assert served <= tables.KINDS.keys()


def test_delete_options_come_with_any_version():
    raw = message((1, 0), (4, "Background"))
    for version in ("v1", "batch/v1", "meta.k8s.io/v1"):
        assert protobuf.decode(body(version, "DeleteOptions", raw)) == {
            "apiVersion": version,
            "kind": "DeleteOptions",
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Background",
        }


@cases("damaged, said", {
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
    "group": (body("v1", "Pod", varint(99 << 3 | 3)), "no wire type 3"),
    "no double": (body("v1", "Pod", varint(99 << 3 | 1)), "end within a field"),
    "map with a number for a key": (body("v1", "ConfigMap", field(2, field(1, 3))), "wire type"),
    "number for a map": (body("v1", "ConfigMap", field(2, 3)), "wire type"),
    "too large": (b"k8s\x00" + bytes(5 * 1024 * 1024), "at most"),
})  # fmt: skip
def test_what_is_no_message_is_a_bad_request(damaged, said):
    with pytest.raises(errors.BadRequest, match=said):
        protobuf.decode(damaged)


@pytest.mark.parametrize(
    ("version", "kind"),
    [("apps/v1", "Deployment"), ("v1", "Job"), ("batch.volcano.sh/v1alpha1", "Job"), ("x" * 99, "Pod")],
)
def test_a_kind_without_a_table_is_refused(version, kind):
    with pytest.raises(errors.UnsupportedMediaType, match=f"{kind} of"):
        protobuf.decode(body(version, kind, b""))


def meta(*fields):
    return (1, message(*fields))


def test_zeros_are_dropped_as_omitempty_does():
    obj = pod(meta((1, ""), (3, "default"), (7, 0), (8, b"")), (2, message((11, 0), (4, 0), (3, ""))))
    assert obj["metadata"] == {"namespace": "default"}
    assert obj["spec"] == {"terminationGracePeriodSeconds": 0}


def test_a_zero_takes_back_what_came_before():
    assert pod(meta((3, "a"), (3, "")))["metadata"] == {}


def test_messages_merge_and_lists_go_on():
    obj = pod(meta((1, "a"), (14, "x")), meta((3, "b"), (14, "y")))
    assert obj["metadata"] == {"name": "a", "namespace": "b", "finalizers": ["x", "y"]}


def test_numbers_may_be_packed():
    security = message((4, varint(1) + varint(2)), (4, 3))
    obj = pod((2, message((14, security))))
    assert obj["spec"]["securityContext"]["supplementalGroups"] == [1, 2, 3]


def test_numbers_are_signed():
    assert pod((2, message((25, -5))))["spec"]["priority"] == -5
    assert pod((2, message((4, -1))))["spec"]["terminationGracePeriodSeconds"] == -1
    assert pod((2, message((25, 1 << 33))))["spec"]["priority"] == 0


def test_unknown_fields_are_skipped():
    obj = pod((900, "x"), (901, 7), (902, 1.5), meta((1, "a")), (2, b""))
    assert obj["metadata"] == {"name": "a"}
    assert protobuf.decode(body("v1", "Pod", varint(9 << 3 | 5) + b"1234" + field(1, b"")))["metadata"] == {}


def test_entries_of_maps():
    entries = ((2, message((1, "a"), (2, "1"))), (2, message((2, "x"))), (2, message((1, "b"))), (2, b""))
    assert config_map(*entries)["data"] == {"a": "1", "": "", "b": ""}
    assert config_map((3, message((1, "k"), (2, b"\x00\xff"))))["binaryData"] == {"k": "AP8="}
    assert config_map((3, message((1, "k"))))["binaryData"] == {"k": ""}


def test_text_that_is_not_utf8_is_shown_as_such():
    assert config_map((2, message((1, "a"), (2, b"\xffx"))))["data"] == {"a": "\ufffdx"}


@cases("moment, text", {
    "epoch": (message((1, 0), (2, 0)), "1970-01-01T00:00:00Z"),
    "no fractions": (message((1, 1767225600), (2, 999_999_999)), "2026-01-01T00:00:00Z"),
    "before the epoch": (message((1, -1), (2, 0)), "1969-12-31T23:59:59Z"),
    "none": (b"", None),
})  # fmt: skip
def test_times(moment, text):
    assert pod(meta((8, moment)))["metadata"].get("creationTimestamp") == text


def lease(moment):
    raw = message((2, message((4, moment))))
    return protobuf.decode(body("coordination.k8s.io/v1", "Lease", raw))["spec"].get("renewTime")


@pytest.mark.parametrize(
    ("nanos", "text"), [(0, "00.000000Z"), (123_456_789, "00.123456Z"), (1000, "00.000001Z"), (-5, "00.000000Z")]
)
def test_micro_times(nanos, text):
    assert lease(message((1, 1767225600), (2, nanos))) == f"2026-01-01T00:00:{text}"
    assert lease(b"") is None


@pytest.mark.parametrize("seconds", [1 << 40, -(1 << 40)])
def test_times_beyond_the_calendar_are_refused(seconds):
    with pytest.raises(errors.BadRequest, match="years 1 to 9999"):
        pod(meta((8, message((1, seconds)))))


def target_port(*fields):
    raw = message((2, message((1, message((4, message(*fields)))))))
    return protobuf.decode(body("v1", "Service", raw))["spec"]["ports"][0]["targetPort"]


def test_int_or_string():
    assert target_port((1, 0), (2, 80), (3, "")) == 80
    assert target_port((1, 1), (2, 0), (3, "http")) == "http"
    assert target_port() == 0


def test_quantities():
    def limits(value):
        raw = message((1, message((1, "cpu"), (2, value))))
        return protobuf.decode(body("v1", "ResourceQuota", message((2, raw))))["spec"]["hard"]

    assert limits(message((1, "500m"))) == {"cpu": "500m"}
    assert limits(b"") == {"cpu": "0"}


def managed(raw):
    return pod(meta((17, message((1, "m"), (7, message((1, raw)))))))["metadata"]["managedFields"][0]


def test_raw_json():
    assert managed(b'{"f:spec":{"f:a":null}}') == {"manager": "m", "fieldsV1": {"f:spec": {"f:a": None}}}
    assert managed(b"") == {"manager": "m"}
    for wrong in (b"{", b"\xff", b"[" * 100_000):
        with pytest.raises(errors.BadRequest, match="holds JSON"):
            managed(wrong)


def schema(raw):
    version = message((1, "v1"), (4, message((1, raw))))
    crd = message((2, message((7, version))))
    obj = protobuf.decode(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd))
    return obj["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def test_schemas_that_may_be_something_else():
    text = message((5, "string"))
    assert schema(message((30, message((1, 1))))) == {"additionalProperties": True}
    assert schema(message((30, message((1, 0))))) == {"additionalProperties": False}
    assert schema(message((30, message((1, 1), (2, text))))) == {"additionalProperties": {"type": "string"}}
    assert schema(message((24, message((1, text))))) == {"items": {"type": "string"}}
    assert schema(message((24, message((2, text), (2, text))))) == {"items": [{"type": "string"}] * 2}
    names = message((1, "a"), (2, message((2, "b"))))
    assert schema(message((32, names))) == {"dependencies": {"a": ["b"]}}


def test_floats():
    assert schema(message((9, 2.5))) == {"maximum": 2.5}
    assert repr(schema(message((9, 2.0)))) == "{'maximum': 2}"
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(errors.BadRequest, match="not finite"):
            schema(message((9, wrong)))


def test_depth_is_bounded():
    raw = b""
    for _ in range(20):
        raw = message((28, raw))  # not
    assert schema(raw)["not"]
    for _ in range(5000):
        raw = message((28, raw))
    with pytest.raises(errors.BadRequest, match="nested deeper"):
        schema(raw)


@cases("raw", {
    "messages": field(2, field(2, b"") * 400_000),
    "packed numbers": field(2, field(14, field(4, b"\x01" * 400_000))),
    "unknown fields": field(900, 0) * 400_000,
})  # fmt: skip
def test_the_number_of_fields_is_bounded(raw):
    with pytest.raises(errors.BadRequest, match="more than"):
        protobuf.decode(body("v1", "Pod", raw))


def never_anything_else(data):
    try:
        msgspec.json.encode(protobuf.decode(data))
    except (errors.BadRequest, errors.UnsupportedMediaType):
        pass


@given(st.sampled_from(sorted(tables.KINDS)), st.binary(max_size=200))
@example(("v1", "Pod"), b"\x0a\x00\x12\x00")
def test_no_bytes_raise_anything_but_the_two_errors(kind, raw):
    never_anything_else(body(kind[0], kind[1], raw))


@given(st.binary(max_size=200))
def test_no_envelope_raises_anything_but_the_two_errors(raw):
    never_anything_else(b"k8s\x00" + raw)


@given(
    st.sampled_from(GOLDEN),
    st.lists(st.tuples(st.integers(min_value=0), st.integers(0, 255)), min_size=1, max_size=6),
    st.integers(min_value=0),
)
def test_no_damaged_body_raises_anything_but_the_two_errors(data, changes, cut):
    damaged = bytearray(data)
    for at, byte in changes:
        damaged[at % len(damaged)] = byte
    never_anything_else(bytes(damaged))
    never_anything_else(bytes(damaged[: cut % len(damaged)]))
