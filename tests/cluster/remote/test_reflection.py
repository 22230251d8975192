"""The rules of following one kind, as tables."""

from __future__ import annotations

import pytest

from cluster.remote import reflection
from cluster.remote.reflection import News, Phase, Standing, Step
from kube.errors import Cause, Expired, Forbidden, InternalError, NotFound, Timeout, TooManyRequests, Unauthorized
from kube.resources import PODS

NOW = 5000
LIVE = Standing("7", phase=Phase.LIVE, since=1000)


def pod(version="8"):
    return {"metadata": {"name": "a", "namespace": "d", "uid": "u", "resourceVersion": version}}


@pytest.mark.parametrize(
    ("before", "news", "after"),
    [
        pytest.param(
            LIVE, News(PODS, Step.BEGUN), Standing("", phase=Phase.LOADING, since=NOW), id="a list begins anew"
        ),
        pytest.param(
            Standing(phase=Phase.LOADING, since=1000),
            News(PODS, Step.PAGE, writes=(None, None)),
            Standing(phase=Phase.LOADING, since=1000, objects_read=2),
            id="a page is counted",
        ),
        pytest.param(
            Standing(anew=True, phase=Phase.LOADING, since=1000),
            News(PODS, Step.LISTED, version="9"),
            Standing("9", phase=Phase.LIVE, since=NOW),
            id="a whole list settles which versions count",
        ),
        pytest.param(
            LIVE, News(PODS, Step.CHANGED, version="8"), Standing("8", phase=Phase.LIVE, since=1000), id="a change"
        ),
        pytest.param(
            LIVE,
            News(PODS, Step.AWAY, reason="connection refused"),
            Standing("7", phase=Phase.AWAY, since=NOW, reason="connection refused"),
            id="away keeps where to go on",
        ),
        pytest.param(
            Standing("7", phase=Phase.AWAY, since=1000, reason="a"),
            News(PODS, Step.AWAY, reason="b"),
            Standing("7", phase=Phase.AWAY, since=1000, reason="b"),
            id="away for another reason is away since the first",
        ),
        pytest.param(
            Standing("7", phase=Phase.AWAY, since=1000, reason="a"),
            News(PODS, Step.WATCHED),
            Standing("7", phase=Phase.LIVE, since=NOW),
            id="watched again",
        ),
        pytest.param(
            LIVE,
            News(PODS, Step.ABSENT),
            Standing("", anew=True, phase=Phase.ABSENT, since=NOW),
            id="a kind that is gone begins anew should it come back",
        ),
    ],
)
def test_standing_after_news(before, news, after):
    assert reflection.standing_after(before, news, NOW) == after


@pytest.mark.parametrize(
    ("line", "deleted", "version", "error"),
    [
        pytest.param({"type": "ADDED", "object": pod()}, False, "8", None, id="added"),
        pytest.param({"type": "MODIFIED", "object": pod()}, False, "8", None, id="modified"),
        pytest.param({"type": "DELETED", "object": pod()}, True, "8", None, id="deleted"),
        pytest.param({"type": "BOOKMARK", "object": pod("9")}, None, "9", None, id="bookmark"),
        pytest.param({"type": "BOOKMARK", "object": pod("6")}, None, "", reflection.GoneBack, id="versions went back"),
        pytest.param({"type": "ERROR", "object": Expired("").status()}, None, "", Expired, id="expired in the stream"),
        pytest.param({"type": "ERROR", "object": {"code": 500}}, None, "", InternalError, id="another error"),
    ],
)
def test_line_of_a_watch(line, deleted, version, error):
    event = reflection.read_event(PODS, line, after="7")
    assert event.version == version
    assert (event.write.deleted if event.write else None) is deleted
    assert type(event.error) is (error or type(None))


@pytest.mark.parametrize(
    ("error", "what"),
    [
        pytest.param(Expired(""), "list", id="410"),
        pytest.param(reflection.GoneBack(""), "list anew", id="versions went back"),
        pytest.param(Timeout.too_large_resource_version(9, 7), "list anew", id="a version of the future"),
        pytest.param(Timeout.of("busy"), "again", id="504"),
        pytest.param(TooManyRequests(""), "again", id="429"),
        pytest.param(NotFound(), "absent", id="404"),
        pytest.param(Forbidden(""), "refused", id="403"),
        pytest.param(Unauthorized(""), "again", id="401, until the kubeconfig has another token"),
        pytest.param(InternalError(""), "again", id="500"),
    ],
)
def test_what_follows_an_error(error, what):
    assert reflection.after_error(error) == what


@pytest.mark.parametrize(
    ("versions", "anew", "gone"),
    [
        pytest.param({"x": "5"}, False, ["x"], id="older than the list"),
        pytest.param({"x": "9"}, False, ["x"], id="as old as the list"),
        pytest.param({"x": "10"}, False, [], id="made after the list"),
        pytest.param({"x": "10"}, True, ["x"], id="versions count for nothing"),
    ],
)
def test_what_a_list_does_not_name_is_gone_unless_it_is_newer(versions, anew, gone):
    news = News(PODS, Step.LISTED, version="9", uids=frozenset("y"), anew=anew)
    stored = {"x": "d/x", "y": "d/y"}
    assert reflection.vanished(stored, news.uids, {"y": "3", **versions}, news) == gone


@pytest.mark.parametrize(
    ("standing", "news"),
    [
        pytest.param(Standing("7"), True, id="newer than what was heard"),
        pytest.param(Standing("8"), False, id="heard already"),
        pytest.param(Standing("9"), False, id="heard already, and more"),
        pytest.param(Standing(""), True, id="while a list is read"),
        pytest.param(Standing("", anew=True), False, id="while versions count for nothing"),
    ],
)
def test_answer_of_the_api_is_news(standing, news):
    assert reflection.is_news("8", standing) is news


@pytest.mark.parametrize(
    ("failures", "luck", "seconds"),
    [(1, 0, 0.125), (1, 1, 0.25), (3, 1, 1.0), (6, 1, 8.0), (1000, 1, 8.0), (1000, 0, 4.0)],
)
def test_wait_grows_to_its_limit(failures, luck, seconds):
    assert reflection.wait_s(failures, luck) == seconds


def test_cause_of_a_future_version_is_told_by_its_reason():
    error = Timeout("x", causes=[Cause("ResourceVersionTooLarge", "Too large", "")])
    assert reflection.after_error(error) == "list anew"
