"""How fresh the picture of a cluster is is the same to everybody who asks: pages, sockets, the other clusters."""

import re

from cluster import access, clock
from cluster.models import MirroredCluster, MirroredKind
from cluster.remote.http.target import Target
from cluster.several.entries import Entry
from dashboard.live import TopicRequest
from dashboard.live.topics import find
from kube.resources import JOBS, PODS
from tests.dashboard.pages.conftest import admin, page  # noqa: F401  admin is a fixture
from tests.same import differing
from tests.tables import cases
from volcano_ui.supervision import reporting

LIVE, REFUSED, LOADING = (
    {"phase": "live"},
    {"phase": "refused", "reason": "no"},
    {"phase": "loading", "objects_read": 7},
)


def strip(text):
    return re.search(r'data-word="([^"]*)"', text)[1]


def to_the_others(browser):
    """What a cluster reports of itself, and the menu of all clusters says of it."""
    reporting.report()
    menu = browser.get("/jobs/").content.decode().partition('id="clusters"')[2].partition("</nav>")[0]
    return strip(menu)


PLACES = {
    "overview": lambda browser: page(browser, "/").one(id="cluster-freshness").get("data-word"),
    "page of a list": lambda browser: page(browser, "/jobs/").one(id="cluster-freshness").get("data-word"),
    "socket": lambda browser: strip(find("cluster")(TopicRequest(access.for_user(browser.user), {})).parts["cluster-freshness"]),
    "menu of clusters": to_the_others,
}  # fmt: skip


@cases(
    "cluster, kinds, word",
    {
        "nobody has heard of it": (None, {}, "loading"),
        "it answers, and is read": ({"heard": -1}, {PODS: LOADING, JOBS: LIVE}, "loading"),
        "all is read": ({"heard": -1}, {PODS: LIVE, JOBS: LIVE}, "live"),
        "a kind may not be read": ({"heard": -1}, {PODS: REFUSED, JOBS: LIVE}, "partly live"),
        "nothing may be read": ({"heard": -1}, {PODS: REFUSED, JOBS: REFUSED}, "may not be read"),
        "it does not answer": ({"heard": -9, "away": -5}, {PODS: LIVE, JOBS: LIVE}, "away"),
        "nobody follows it": ({"heard": -60}, {PODS: LIVE, JOBS: LIVE}, "not followed"),
    },
)
def test_everybody_says_the_same_of_how_fresh_it_is(admin, settings, tmp_path, cluster, kinds, word):  # noqa: F811
    settings.TARGET, settings.CLUSTER_NAME, settings.STATE = Target("dev", "https://dev", ""), "dev", tmp_path
    settings.CLUSTERS, settings.CLUSTER = (Entry("dev"), Entry("other", "/c")), Entry("dev")
    now = clock.milliseconds()
    if cluster:
        times = {name: now + 1000 * seconds for name, seconds in cluster.items()}
        MirroredCluster.objects.create(server="https://dev", reason="it refused", **times)
    for kind, fields in kinds.items():
        MirroredKind.objects.create(resource=kind.id, since=now, **fields)
    assert differing(PLACES, word, admin) == {}
