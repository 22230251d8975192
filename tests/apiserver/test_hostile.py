"""Requests that mean harm: none is answered with a 500, and none takes more than a bounded time or memory."""

import contextlib
import gzip
import json
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import hypothesis
import pytest
from hypothesis import strategies as st

from apiserver.http import bodies, bounds, intake
from kube.errors import ApiError
from proof.harness.serving import in_thread
from proof.harness.waiting import HANG_S
from tests.apiserver.client import Api
from tests.campaign import examples
from tests.cluster.api.conftest import config_map
from tests.tables import cases, parts
from volcano_ui import web

MAPS = "/api/v1/namespaces/default/configmaps"
JSON, YAML = "application/json", "application/yaml"
LARGEST = 3 * 1024 * 1024


def filled(unit, before="", after=""):
    count = (LARGEST - len(before) - len(after)) // len(unit)
    return f"{before}{unit * count}{after}".encode()


BODIES = {
    "bytes that are no text": b'{"metadata":{"name":"a"},"data":{"a":"\xff"}}',
    "huge number": b'{"metadata":{"name":"a","generation":1' + b"0" * 1_000_000 + b"}}",
    "deep": b"[" * 1_000_000,
    "deep and closed": b'{"a":' * 500 + b"1" + b"}" * 500,
    "many lists": filled("[],", "[", "[]]"),
    "many nested lists": filled("[" * 100 + "]" * 100 + ",", "[", "1]"),
    "empty": b"",
}
YAML_BODIES = {
    "deep flow": b"[" * LARGEST,
    "deep flow mapping": b"{a: " * 700_000,
    "deep block": b"- " * 1_000_000,
    "deep mapping": b"? " * 1_000_000,
    "many values": filled("a,", "[", "a]"),
    "bomb": b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(b"%c: &%c [%b]\n" % (n + 1, n + 1, b",".join([b"*%c" % n] * 9)) for n in range(97, 117)),
    "merge bomb": b"a0: &a0 {x: 1}\n" + b"".join(b"a%d: &a%d\n  <<: [%b]\n" % (n + 1, n + 1, b",".join([b"*a%d" % n] * 9)) for n in range(12)),
    "long text many times": b"a: &a " + b"x" * 1_000_000 + b"\nb: [" + b"*a," * 100_000 + b"]",
    "sexagesimal": b"a: !!int 1" + b":1" * 1_000_000,
    "bad utf-8": b"a: \xff\xfe\xfd",
}  # fmt: skip


@cases("body, kind", {
    **{name: (body, JSON) for name, body in BODIES.items()}, **{name: (body, YAML) for name, body in YAML_BODIES.items()},
})  # fmt: skip
def test_a_body_that_cannot_be_read_is_a_bad_request(api, body, kind):
    answer = api.post(MAPS, body, content_type=kind)
    assert answer.json()["kind"] == "Status"
    assert answer.status_code in ((400,) if kind != YAML else (400, 422)), answer.text
    assert len(answer.content) < 3000


@parts("apiserver/bodies")
def test_a_small_body_that_cannot_be_read_is_a_bad_request(story, part):
    story.goes(part)


MERGED = b"base: &b {x: 1, y: 2}\none:\n  <<: *b\n  y: 3\ntwo:\n  <<: [*b, {z: 4}]\n"


@cases("text, value", {
    "sexagesimal": (b"1:30", "1:30"), "a date": (b"2026-01-01", "2026-01-01"), "hexadecimal": (b"0x1F", 31),
    "a float": (b"1.5", 1.5), "a text": (b"'1'", "1"), "many digits": (b"1" * 200, "1" * 200), "a truth value": (b"yes", True),
})  # fmt: skip
def test_yaml_means_what_it_means_to_kubernetes(monkeypatch, text, value):
    assert bodies.from_yaml(b"a: " + text).value == {"a": value}
    found = bodies.from_yaml(MERGED).value
    assert (found["one"], found["two"]) == ({"x": 1, "y": 3}, {"x": 1, "y": 2, "z": 4})
    monkeypatch.setattr(bodies, "trees", None)
    assert bodies.from_yaml(b' \n{"a": [1e3, {"b": "c"}]}').value == {"a": [1000.0, {"b": "c"}]}, "JSON as JSON"


@pytest.mark.parametrize("key", ["a", "", '\\"', "\\\\", "\\u0061"])
def test_a_duplicate_is_seen_however_it_is_written_and_the_first_thousands_are_named(key):
    for value in ("1", '"a"', '"\\\\"', "{}", '{"b": ["\\""]}'):
        assert len(bodies.from_json(f'{{"{key}": {value}, "{key}": 1, "c": 1}}'.encode()).duplicates) == 1
    body = "{" + ",".join(f'"k{n}":1,"k{n}":2' for n in range(20_000)) + "}"
    assert len(bodies.from_json(body.encode()).duplicates) == bodies.MAX_DUPLICATES


def test_values_by_the_million_are_refused_before_they_are_made():
    for body in (filled("a,", "[", "a]"), filled("a: b\n"), b"[" * LARGEST):
        with pytest.raises(ApiError, match="more than"):
            bodies.from_yaml(body)
    begun = time.thread_time()
    with pytest.raises(ApiError):
        bodies.from_json(filled("[],", "[", "[]]"))
    assert time.thread_time() - begun < 1.0  # of what takes some 10 ms on a machine with nothing else to do
    text = ",[{" * 300_000  # signs inside texts are no values
    assert bodies.from_json(json.dumps({"a": text}).encode()).value == {"a": text}


@hypothesis.given(
    st.recursive(
        st.none() | st.booleans() | st.integers(0, 9) | st.text('",:[{\\\n\xe9', max_size=4),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('"\\a', max_size=2), inner, max_size=3),
        max_leaves=10,
    ),
    st.booleans(),
)
def test_json_without_duplicates_is_read_once(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "json", None)
        assert bodies.from_json(text) == (value, ())


@examples(300, derandomize=True, database=None)
@hypothesis.given(
    st.binary(max_size=200) | st.text("[]{}:,-&*!<?|>%@'\"# \n\tab1.~", max_size=80).map(str.encode),
    st.sampled_from((bodies.JSON, bodies.YAML, bodies.PROTOBUF)),
)
def test_noise_is_read_or_refused(noise, kind):
    body = b"k8s\0" + noise if kind == bodies.PROTOBUF else noise
    with contextlib.suppress(ApiError):
        json.dumps(bodies.decode(kind, body).value, allow_nan=False)


def test_a_revision_of_thousands_of_digits_is_refused(api):
    api.post(MAPS, config_map("a"))
    version = {"resourceVersion": "9" * 5000}
    assert api.put(f"{MAPS}/a", {"metadata": {"name": "a", **version}}).status_code in (400, 409)
    assert api.delete(f"{MAPS}/a", {"preconditions": version}).status_code == 400


def test_a_large_body_keeps_nobody_waiting(api):
    """Others are answered while a body is decoded that takes a second of processor time."""
    body, others, answered = filled("- [a, b, c]\n", "a:\n"), Api(api.url), 0
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(api.post, MAPS, body, content_type=YAML)
        while not slow.done():
            assert others.get("/version").status_code == 200
            answered += 1
    assert slow.result().status_code == 400
    assert answered > 3


def test_bodies_that_wait_are_counted_and_forgotten_and_none_is_unpacked(api, monkeypatch):
    monkeypatch.setattr(intake, "MAX_HELD", 1024 * 1024)
    assert api.post(MAPS, filled(" ")).status_code == 429
    for _ in range(10):
        assert api.post(MAPS, " " * 500_000).status_code == 400
    packed = gzip.compress(b"{}" * 1000)
    assert api.post(MAPS, packed, headers={"content-encoding": "gzip"}).status_code == 400


@pytest.fixture(params=["API", "pages"])
def either(request, server, monkeypatch):
    """The address of a server, of either kind, that does not wait for long."""
    monkeypatch.setattr(bounds, "HEAD_S", 0.2)
    if request.param == "API":
        yield server
    else:
        with in_thread(web.config(application=None), web.listen("127.0.0.1", 0)) as url:
            yield url


@pytest.mark.parametrize(("begun", "expected"), [(b"", b""), (b"GET /version HT", b"HTTP/1.1 408 ")])
def test_a_head_that_does_not_come_is_not_waited_for(either, begun, expected):
    host, port = either.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=HANG_S) as peer:
        peer.sendall(begun)
        received = b"".join(iter(lambda: peer.recv(1000), b""))
        assert received[: len(expected) or None] == expected


LENGTHS = [
    "transfer-encoding: chunked\r\ncontent-length: 5", "content-length: 5\r\ntransfer-encoding: chunked",
    "content-length: 5\r\ncontent-length: 6", "content-length: 5, 5", "transfer-encoding: chunked, identity",
    "transfer-encoding : chunked",
]  # fmt: skip


@pytest.mark.parametrize("lengths", LENGTHS)
def test_a_body_of_two_lengths_carries_no_second_request(server, lengths):
    host, port = server.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=HANG_S) as peer:
        hidden = b"0\r\n\r\nGET /version HTTP/1.1\r\nhost: a\r\n\r\n"
        peer.sendall(f"POST {MAPS} HTTP/1.1\r\nhost: a\r\n{lengths}\r\n\r\n".encode() + hidden)
        got = b"".join(iter(lambda: peer.recv(1 << 16), b""))
    assert (got[:13], got.count(b"HTTP/1.1")) == (b"HTTP/1.1 400 ", 1)


def test_what_is_echoed_stays_in_its_header_and_a_token_in_the_query_is_nobodys(api):
    body = {"metadata": {"generateName": "a"}, 'x\r\nX-Evil: "1\\': 1, "\u00e9\u2028\0": 2}
    answer = api.post(MAPS, body)
    assert (answer.status_code, "x-evil" in answer.headers) == (201, False)
    assert answer.headers.get_list("warning") == [
        r'299 - "unknown field \"x X-Evil: \"1\\\""',
        r'299 - "unknown field \"? ?\""',
    ]
    for name in ("token", "access_token", "authorization", "bearer_token"):
        assert httpx.get(f"{api.url}{MAPS}", params={name: "Bearer a"}, timeout=HANG_S).status_code == 401
