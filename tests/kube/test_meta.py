"""What all objects have: times, names, owners, labels by which they are selected, and the events and errors about them."""

import contextlib
import random
from datetime import UTC, datetime

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kube import conversion, definitions, errors, events, lenient, meta, names, owners, resources, schema, selector
from kube.kinds.core import Event
from kube.resources import CONFIGMAPS, EVENTS, EVENTS_VIEW
from tests.kube.samples import json_values
from tests.tables import cases, parts

moments = st.integers(0, 253_402_300_799_999)


@given(moments, moments)
def test_a_time_survives_writing_and_reading_and_sorts_as_its_text(now, other):
    assert meta.parse_time(meta.now_text(now)) == now
    assert meta.parse_time(meta.timestamp(now)) == now - now % 1000
    assert (now < other) == (meta.now_text(now) < meta.now_text(other))
    assert meta.parse_duration(meta.duration_text(now - other)) == now - other


@parts("kube/times", "times", "durations", "durations as Go writes them")
def test_times_and_durations_are_read_and_written(part):
    read = {"times": meta.parse_time, "durations": meta.parse_duration}.get(part.title)
    part.check(lambda text: read(text) if read else meta.duration_text(int(text)))
    assert meta.now_text(1_767_225_600_123) == "2026-01-01T00:00:00.123000Z"
    assert meta.timestamp(1_767_225_600_123) == "2026-01-01T00:00:00Z"


@given(st.datetimes(timezones=st.just(UTC)))
def test_reading_agrees_with_the_standard_library(moment):
    whole = moment.replace(microsecond=0)
    assert meta.parse_time(whole.isoformat()) == (whole - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000


def test_what_is_no_time_or_duration_is_refused():
    for text in (
        "", "now", "2026-01-01", "2026-01-01T00:00:00", "2026-13-01T00:00:00Z", "2026-01-01T00:00:60Z", "0000-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z\n", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00+99:99", "20260101T000000Z", "2" * 10_000,
    ):  # fmt: skip
        with pytest.raises(ValueError, match="is not a time"):
            meta.parse_time(text)
    for text in ("", "5", "s", "1d", "1h 30m", "1h30", "--1s", "1s\n", "1e3s", "٣s", "9" * 10_000 + "s"):
        with pytest.raises(ValueError, match="is not a duration"):
            meta.parse_duration(text)


@parts("kube/times", "durations for people")
def test_durations_are_said_to_people_in_their_two_largest_units(part):
    part.check(lambda text: meta.duration_words(float(text)))


def test_the_controller_is_the_owner_that_controls():
    references = [
        {"uid": "1", "kind": "A"},
        {"uid": "2", "kind": "B", "name": "b", "apiVersion": "v1", "controller": True},
    ]
    controller = owners.controller_of({"metadata": {"ownerReferences": references}})
    assert (controller.uid, controller.kind, controller.name, controller.api_version) == ("2", "B", "b", "v1")
    for metadata in (None, {}, {"ownerReferences": None}, {"ownerReferences": [{"uid": "1"}]}):
        assert owners.controller_of({"metadata": metadata}) is None
    assert meta.key_of({"metadata": {"namespace": "a", "name": "b"}}) == "a/b"
    assert meta.key_of({"metadata": {"name": "b"}}) == "/b"


@cases("rule, good, bad", {
    "label": (names.dns_label, ["a", "a-b", "0a", "a" * 63], ["", "A", "-a", "a-", "a.b", "a_b", "a" * 64, "a\n", "é"]),
    "subdomain": (names.dns_subdomain, ["a", "a.b", "a-b.c-d", "a" * 253], ["", ".", "a.", ".a", "a..b", "A.b", "a" * 254, "a\n"]),
    "qualified name": (names.qualified_name, ["a", "A_b.c-d", "example.com/Name", "x/" + "a" * 63],
        ["", "/a", "a/", "a/b/c", "EX.com/a", "-a", "a" * 64, "a b"]),
    "label value": (names.label_value, ["", "a", "A_b.c-1", "a" * 63], ["-a", "a-", "a/b", "a" * 64, "a b", "a\n"]),
    "environment variable": (names.env_name, ["A", "_a", "a.b-c", ".a", "-x"], ["", "1A", "a b", "A=", ".", "..", "..a", "A\n"]),
})  # fmt: skip
def test_names(rule, good, bad):
    assert [rule(text) for text in good] == [None] * len(good)
    assert [text for text in bad if not rule(text)] == []


@given(st.integers())
def test_a_suffix_is_five_characters_of_the_alphabet_and_follows_the_seed(seed):
    text = names.suffix(random.Random(seed))
    assert (len(text), text) == (5, names.suffix(random.Random(seed)))
    assert set(text) <= set(names.SUFFIX_ALPHABET)
    assert names.dns_label("a-" + text) is None


OBJECT = {"spec": {"tasks": [1, "a", None], "name": "x", "replicas": 3, "on": True, "none": None}}


def test_what_is_of_another_shape_is_empty():
    for reader, path, expected in (
        (lenient.mapping, "spec", OBJECT["spec"]), (lenient.mapping, "spec name", {}), (lenient.mapping, "spec name deeper", {}),
        (lenient.sequence, "spec tasks", [1, "a", None]), (lenient.sequence, "spec none", []), (lenient.texts, "spec tasks", ["a"]),
        (lenient.text, "spec name", "x"), (lenient.text, "spec replicas", ""), (lenient.whole, "spec replicas", 3),
        (lenient.whole, "spec on", None), (lenient.whole, "absent replicas", None),
    ):  # fmt: skip
        assert reader(OBJECT, *path.split()) == expected, path


@given(json_values(st.sampled_from("ab")), st.lists(st.sampled_from("ab"), max_size=3))
def test_nothing_raises(value, path):
    for reader in (lenient.mapping, lenient.sequence, lenient.text, lenient.texts, lenient.whole):
        reader(value, *path)


keys = st.sampled_from(["a", "b", "app.kubernetes.io/name", "in", "notin"])
values = st.sampled_from(["", "x", "y", "1", "20"])
labels = st.dictionaries(keys, values)
requirement = st.one_of(
    st.builds(selector.Requirement, keys, st.sampled_from(["In", "NotIn"]), st.frozensets(values, min_size=1)),
    st.builds(selector.Requirement, keys, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(selector.Requirement, keys, st.sampled_from(["Gt", "Lt"]), st.just(frozenset({"5"}))),
)
selectors = st.lists(requirement, max_size=4).map(lambda found: selector.LabelSelector(tuple(found)))
WEB = {"app": "web", "tier": "front", "cores": "8"}
POD = {"metadata": {"name": "a,b"}, "status": {"phase": "Running"}, "spec": {"unschedulable": True}}


@parts("kube/selectors")
def test_a_selector_selects_or_is_refused(part):
    parse, obj = {
        "labels": (selector.parse_labels, WEB),
        "objects": (lambda text: selector.from_object(yaml.safe_load(text)), WEB),
        "fields": (selector.parse_fields, POD),
    }[part.title]

    def selects(text):
        try:
            return parse("" if text == "''" else text).matches(obj)
        except selector.SelectorError:
            return "refused"

    part.check(selects)
    found = selector.requirements([{"key": "cores", "operator": "Gt", "values": ["4"]}])
    assert (found.matches(WEB), found.matches({})) == (True, False), "node affinity may compare numbers"
    for text in ("a" * 100, "a=" + "b" * 64, "a," * 10_000):
        with pytest.raises(selector.SelectorError):
            selector.parse_labels(text)


@given(selectors, selectors, labels)
def test_a_selector_written_and_read_again_selects_the_same_and_a_comma_is_and(a, b, present):
    assert selector.parse_labels(str(a)).matches(present) == a.matches(present)
    both = selector.LabelSelector(a.requirements + b.requirements)
    assert both.matches(present) == (a.matches(present) and b.matches(present))


@given(st.text(max_size=20))
def test_a_field_value_survives_escaping(value):
    written = selector.FieldSelector((("metadata.name", True, value),))
    assert selector.parse_fields(str(written)) == written


@given(st.text(max_size=40))
def test_any_text_is_a_selector_or_refused(text):
    for parse in (selector.parse_labels, selector.parse_fields):
        with contextlib.suppress(selector.SelectorError):
            parse(text)


NOW = 1_767_225_600_000
QUEUE = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team", "uid": "u"}}
JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"namespace": "d", "name": "j" * 253, "uid": "v"},
}


def event(about=QUEUE, reason="Opened", message="It is open.", now=NOW):
    return events.event(about, reason, message, now, component="test")


@cases("about", {"of the cluster": QUEUE, "in a namespace, with the longest name": JOB})
def test_event_is_valid_and_about_its_object(about):
    made = event(about)
    assert schema.check(made, definitions.of(resources.EVENTS)) == []
    assert names.dns_subdomain(made["metadata"]["name"]) is None
    assert made["involvedObject"]["uid"] == about["metadata"]["uid"]
    assert made["metadata"]["namespace"] == about["metadata"].get("namespace", "default")


def test_same_news_at_the_same_moment_is_the_same_event_and_a_long_message_is_cut_between_characters():
    assert event() == event()
    others = [event(message="Other."), event(reason="Closed"), event(now=NOW + 1)]
    assert len({made["metadata"]["name"] for made in [event(), *others]}) == 4
    message = event(message="ü" * 2000)["message"]
    assert len(message.encode()) <= events.LONGEST_MESSAGE
    assert message.endswith("ü…")


MOMENT, LATER = "2026-01-01T00:00:00.000001Z", "2026-01-01T00:09:00.000001Z"


@cases("fields, times, seen", {
    "an older client's": ({"count": 4, "lastTimestamp": LATER}, 4, LATER),
    "a newer client's": ({"eventTime": MOMENT}, 1, MOMENT),
    "a series": ({"eventTime": MOMENT, "series": {"count": 3, "lastObservedTime": LATER}}, 3, LATER),
    "one that says nothing": ({}, 1, "2026-01-01T00:00:00Z"),
})  # fmt: skip
def test_how_often_an_event_happened_and_when_last(fields, times, seen):
    decoded = msgspec.convert({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, **fields}, Event)
    assert (decoded.times, decoded.last_seen) == (times, seen)


META = {"name": "e", "namespace": "d"}
# Of each field its name in the core form, and the one in the form of events.k8s.io where that is another.
NAMES = """involvedObject regarding, message note, source deprecatedSource, reportingComponent reportingController, reportingInstance,
    firstTimestamp deprecatedFirstTimestamp, lastTimestamp deprecatedLastTimestamp, count deprecatedCount, eventTime, series,
    action, related, type, reason"""
FIELDS = [(names.split()[0], names.split()[-1]) for names in NAMES.split(",")]


def core(**fields):
    return {"apiVersion": "v1", "kind": "Event", "metadata": META, **fields}


def view(**fields):
    return {**core(**fields), "apiVersion": "events.k8s.io/v1"}


def test_a_field_has_a_name_in_each_form_and_what_only_the_other_form_has_goes():
    for name, other in FIELDS:
        assert conversion.converted(EVENTS_VIEW, core(**{name: {"a": 1}})) == view(**{other: {"a": 1}})
        assert conversion.stored(EVENTS_VIEW, view(**{other: {"a": 1}})) == core(**{name: {"a": 1}})
    assert conversion.stored(EVENTS_VIEW, view(message="core's", note="ours")) == core(message="ours")
    assert conversion.converted(EVENTS_VIEW, core(message="ours", note="the view's")) == view(note="ours")
    for resource, obj in ((EVENTS_VIEW, view(note="n")), (EVENTS, core(message="m")), (CONFIGMAPS, {"a": 1})):
        assert conversion.converted(resource, obj) is obj
    assert conversion.stored(EVENTS, core(message="m")) == core(message="m")
    ours, cores = ({"f:note": {}, "f:regarding": {"f:name": {}}}, {"f:message": {}, "f:involvedObject": {"f:name": {}}})
    assert conversion.fields(ours, EVENTS_VIEW, EVENTS) == cores
    assert conversion.fields(cores, EVENTS, EVENTS_VIEW) == ours
    assert conversion.fields(ours, EVENTS_VIEW, EVENTS_VIEW) is ours


ANYTHING = json_values(st.text(max_size=3), leaves=4)


def of(number):
    return st.dictionaries(st.sampled_from([*(names[number] for names in FIELDS), "odd"]), ANYTHING)


@given(of(0), of(1))
def test_what_goes_to_the_other_form_and_back_is_the_same(fields, others):
    obj, seen = core(**fields), view(**others)
    assert conversion.stored(EVENTS_VIEW, conversion.converted(EVENTS_VIEW, obj)) == obj
    assert conversion.converted(EVENTS_VIEW, conversion.stored(EVENTS_VIEW, seen)) == seen


def test_a_selected_field_is_found_where_it_is_stored():
    paths = {"regarding.name": "involvedObject.name", "reportingController": "reportingComponent", "type": "type"}
    for path, stored in paths.items():
        assert conversion.stored_path(EVENTS_VIEW, path) == stored
        assert conversion.stored_path(EVENTS, path) == path
    assert {conversion.stored_path(EVENTS_VIEW, each) for each in EVENTS_VIEW.fields} <= set(EVENTS.fields)


TWO = [errors.required("spec.a"), errors.forbidden("spec.b", "no")]
INVALID = [
    {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.a"},
    {"reason": "FieldValueForbidden", "message": "Forbidden: no", "field": "spec.b"},
]


# What a kube-apiserver does not say in `tests/golden/kubernetes/statuses.json`; the rest is compared there.
@cases("error, message, details", {
    "a method without a resource": (errors.MethodNotAllowed(), "the server does not allow this method on the requested resource", {}),
    "a verb that the resource has not": (errors.MethodNotAllowed.of("jobs.batch", "update"),
        'update is not supported on resources of kind "jobs.batch"', {"group": "batch", "kind": "jobs"}),
    "timeout": (errors.Timeout.of("request did not complete", retry_after_s=2), "Timeout: request did not complete", {"retryAfterSeconds": 2}),
    "too many requests": (errors.TooManyRequests("Later.", retry_after_s=3), "Later.", {"retryAfterSeconds": 3}),
    "expired": (errors.Expired("It is old."), "It is old.", None),
    "unavailable": (errors.ServiceUnavailable("Not now."), "Not now.", None),
    "a defect": (errors.InternalError.of("a defect"), "Internal error occurred: a defect", {"causes": [{"message": "a defect"}]}),
    "two causes": (errors.Invalid.of("Job.batch.volcano.sh", "x", TWO),
        'Job.batch.volcano.sh "x" is invalid: [spec.a: Required value, spec.b: Forbidden: no]',
        {"name": "x", "group": "batch.volcano.sh", "kind": "Job", "causes": INVALID}),
    "forbidden": (errors.Forbidden.of("pods", "", "quota"), "pods is forbidden: quota", {"kind": "pods"}),
    "conflict": (errors.Conflict.of("pods", "x", "late"), 'Operation cannot be fulfilled on pods "x": late', {"name": "x", "kind": "pods"}),
})  # fmt: skip
def test_texts_are_those_of_kubernetes(error, message, details):
    status = error.status()
    assert (status["message"], status.get("details")) == (message, details)
    assert (str(error), status["code"]) == (message, error.code)
    always = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
    assert always.items() <= status.items()


@cases("cause, text", {
    "required": (errors.required("a"), "a: Required value"),
    "required, with a reason": (errors.required("a", "give one"), "a: Required value: give one"),
    "invalid": (errors.invalid("a", -1, "must be more"), "a: Invalid value: -1: must be more"),
    "an object": (errors.invalid("a", {"b": None}, "no"), 'a: Invalid value: {"b": null}: no'),
    "a text": (errors.invalid("a", "Zoë", "no"), 'a: Invalid value: "Zoë": no'),
    "of no field": (errors.invalid("", 1, "no"), "Invalid value: 1: no"),
    "not supported": (errors.not_supported("a", "x", ["y", "z"]), 'a: Unsupported value: "x": supported values: "y", "z"'),
    "duplicate": (errors.duplicate("a", "x"), 'a: Duplicate value: "x"'),
    "not found": (errors.not_found("a", "x"), 'a: Not found: "x"'),
    "too long": (errors.too_long("a", 63), "a: Too long: may not be more than 63 bytes"),
    "too many": (errors.too_many("a", 3, 2), "a: Too many: 3: must have at most 2 items"),
})  # fmt: skip
def test_causes_print_as_those_of_kubernetes(cause, text):
    assert str(cause) == text


def test_any_value_can_be_shown_in_a_short_message():
    for value in ("x" * 10**6, "\ud800", b"x", {1: {2}}, float("nan")):
        text = errors.quoted(value)
        assert len(text) <= errors.LONGEST_QUOTED + 1
        msgspec.json.encode(text)


def test_a_status_is_read_back_as_the_error_that_it_says_and_one_that_says_little_is_told_by_its_code():
    for error in (
        errors.Invalid.of("Job.batch.volcano.sh", "x", TWO), errors.NotFound.of("pods", "x"), errors.InternalError("boom"),
        errors.AlreadyExists.generated("jobs.batch.volcano.sh", "x"), errors.Timeout.too_large_resource_version(9, 7),
    ):  # fmt: skip
        read = errors.of_status(error.status(), error.code)
        assert (type(read), read.status()) == (type(error), error.status())
    for status, code, kind, reason in (
        ({}, 403, errors.Forbidden, "Forbidden"), ({"reason": "Gone"}, 410, errors.Expired, "Expired"),
        ({"message": "teapot"}, 418, errors.ApiError, "InternalError"),
        ({"reason": "StorageReadError"}, 500, errors.InternalError, "InternalError"),
    ):  # fmt: skip
        read = errors.of_status(status, code)
        assert (type(read), read.code, read.reason, bool(read.message)) == (kind, code, reason, True)
