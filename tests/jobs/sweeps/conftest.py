from __future__ import annotations

import pytest

from cluster import access
from cluster.bootstrap import bootstrap
from cluster.store import store
from jobs.sweeps import submission
from jobs.sweeps.draft import Draft
from kube.resources import CONFIGMAPS, JOBS
from tests.dashboard.pages.conftest import reader
from tests.jobs.sweeps.texts import TRAIN


@pytest.fixture
def sam(db):
    bootstrap()
    return reader("sam", "submitter", "default")


@pytest.fixture
def stranger(sam):
    return reader("olaf", "submitter", "elsewhere")


def made(browser, text=TRAIN, csv="", **grid):
    """Make a sweep of a grid or of CSV; return its ConfigMap."""
    source = "csv" if csv else "grid"
    draft = Draft(text=text, source=source, csv=csv, grid=grid or {"lr": "0.1, 0.2", "batch": "32, 64, 128"})
    return submission.submit(access.for_user(browser.user), draft)


def kept():
    """The names of what records sweeps, and how many jobs are stored."""
    return [stored.name for stored in store.find(CONFIGMAPS, phase="sweep")], len(store.find(JOBS))
