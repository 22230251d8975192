"""What tests of the job controller share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from cluster.bootstrap import bootstrap
from scheduler import rehearsal, waiting_lines
from tests.dashboard.pages.conftest import reader
from tests.jobs.control import Controller
from tests.jobs.story import Story

ROWS = Path(__file__).parents[1] / "golden" / "jobs" / "rows"


@pytest.fixture
def controller(db):
    bootstrap()
    return Controller()


@pytest.fixture
def sam(db):
    """The browser of a submitter of the namespace default."""
    bootstrap()
    return reader("sam", "submitter", "default")


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

    def golden(name, said):
        path = ROWS / f"{name}.yaml"
        found = yaml.safe_load(path.read_text()) if path.exists() else {}
        if request.config.getoption("--update-golden"):
            found[row] = said
            path.write_text(yaml.safe_dump(found, allow_unicode=True, width=1000))
        assert found[row] == said

    return golden


@pytest.fixture(autouse=True)
def _nothing_known():
    """What a process has read of the store is forgotten, which becomes empty behind its back."""
    for each in (waiting_lines, rehearsal):
        each.forget()
    yield
    for each in (waiting_lines, rehearsal):
        each.forget()
