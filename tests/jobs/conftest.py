"""What tests of jobs share: people, and jobs under the real controller."""

import re
from pathlib import Path

import pytest
import yaml

from cluster.bootstrap import bootstrap
from proof.harness import clocks
from proof.harness.clocks import ManualClock
from scheduler import rehearsal, waiting_lines
from tests.dashboard.pages.conftest import reader
from tests.jobs.control import Controller
from tests.jobs.life import Life
from tests.jobs.pages import world
from tests.jobs.story import Story
from tests.reading import reads

__all__ = ["reads"]
ROWS = Path(__file__).parents[1] / "golden" / "jobs" / "rows"


@pytest.fixture
def controller(db):
    bootstrap()
    return Controller()


@pytest.fixture
def cluster(db):
    world.base()


@pytest.fixture
def person(db):
    """Make a user with a role in a namespace."""
    return lambda name, role="submitter", namespace="default": reader(name, role or None, namespace).user


@pytest.fixture
def alice(cluster, person, client):
    """A submitter of the namespace default, logged in with `client`."""
    user = person("alice")
    client.force_login(user)
    return user


@pytest.fixture
def sam(db):
    """The browser of a submitter of the namespace default, which the product itself has furnished."""
    bootstrap()
    return reader("sam", "submitter", "default")


@pytest.fixture
def life(db, person, client):
    """Begin the life of a job whose pages alice reads, on a clock that begins at `world.START`."""
    client.force_login(person("alice"))
    with clocks.using(ManualClock(world.START * 1000)) as clock:
        yield lambda name="demo", **spec: Life(clock, client, name, **spec)


@pytest.fixture
def tell(request, controller, monkeypatch):
    """Tell a story of a job with a spec; where it waits, time stands still until then."""

    def tell(spec, story):
        clock = request.getfixturevalue("moved_clock") if re.search(r"\bwait -?[0-9]", story) else None
        Story(controller, monkeypatch, clock, **spec).goes(story)

    return tell


@pytest.fixture
def golden(request):
    """Compare what is said or made with what a file has under the name of the row, or test; `--update-golden` writes it."""
    row = request.node.callspec.id if hasattr(request.node, "callspec") else request.node.name

    def golden(name, value):
        path = ROWS / f"{name}.yaml"
        found = yaml.safe_load(path.read_text()) if path.exists() else {}
        if request.config.getoption("--update-golden"):
            found[row] = value
            path.write_text(yaml.safe_dump(found, allow_unicode=True, width=1000))
        assert found[row] == value

    return golden


@pytest.fixture(autouse=True)
def _nothing_known():
    """What a process has read of the store is forgotten, which becomes empty behind its back."""
    for each in (waiting_lines, rehearsal):
        each.forget()
    yield
    for each in (waiting_lines, rehearsal):
        each.forget()
