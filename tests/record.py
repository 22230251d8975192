"""pytest's option `--record FILE`: how each test ended and what it took, one line of JSON a test, for CI.

    {"test": nodeid, "outcome": "passed", "failed", "error" or "skipped",
     "reason": why it failed, in a line, "setup": s, "call": s, "teardown": s, "fixtures": [[name, scope, "setup" or "teardown", s], ...]}

A line is appended when its test has ended. A phase that did not happen is null: a test whose worker process
crashed has failed and has no tear-down, and a module that was skipped or could not be collected has no phase.
A fixture's time is without that of the fixtures that it asks for. Its tear-down is in the line of the test after
which it happened, which is often not the test that it was set up for.

When pytest gets to its end, it appends {"exit": its exit status, "seed": the seed of pytest-randomly}.
"""

import json
import time
from collections import defaultdict
from pathlib import Path

import pytest

PHASES = ("setup", "call", "teardown")


def pytest_addoption(parser):
    parser.addoption("--record", type=Path, metavar="FILE", help="append what each test took to FILE, as JSON")


def pytest_configure(config):
    if file := config.option.record:
        config.pluginmanager.register(FixtureTimer())
        # Workers of pytest-xdist send their reports to the process that was called, which alone writes.
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(Recorder(file))


class FixtureTimer:
    """Gives each report the set-ups and tear-downs of fixtures since the one before."""

    def __init__(self):
        self.times = []
        self.nested_s = 0.0  # by the set-ups that the one that is running has asked for

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef, request):
        name = f"{fixturedef.func.__module__}.{fixturedef.argname}"
        began = []

        def begin():
            began.append(time.perf_counter())

        def end():
            taken = time.perf_counter() - began.pop()
            self.times.append([name, fixturedef.scope, "teardown", round(taken, 4)])

        # Finalizers run in reverse order: what the fixture itself registers lies between these two.
        request.addfinalizer(end)
        nested_before, self.nested_s = self.nested_s, 0.0
        start = time.perf_counter()
        try:
            return (yield)
        finally:
            taken = time.perf_counter() - start
            self.times.append([name, fixturedef.scope, "setup", round(taken - self.nested_s, 4)])
            self.nested_s = nested_before + taken
            request.addfinalizer(begin)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        report = yield
        report.fixtures, self.times = self.times, []
        return report


class Recorder:
    """Writes the lines."""

    def __init__(self, file):
        self.file = file
        self.reports = defaultdict(list)

    def pytest_runtest_logreport(self, report):
        self.reports[report.nodeid].append(report)
        # The last one is a tear-down, or pytest-xdist's "???" about a worker that crashed.
        if report.when not in ("setup", "call"):
            self.write(report.nodeid, self.reports.pop(report.nodeid))

    def pytest_collectreport(self, report):
        if not report.passed:
            self.write(report.nodeid, [report])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        self.append({"exit": exitstatus, "seed": session.config.option.randomly_seed})

    def write(self, nodeid, reports):
        phases = {report.when: report for report in reports if report.when in PHASES}
        times = {name: round(phases[name].duration, 4) if name in phases else None for name in PHASES}
        fixtures = [each for report in phases.values() for each in report.fixtures]
        why = next((reason(report) for report in reports if report.failed), "")
        self.append({"test": nodeid, "outcome": outcome(reports), "reason": why, **times, "fixtures": fixtures})

    def append(self, line):
        with self.file.open("a") as file:
            file.write(json.dumps(line) + "\n")


def reason(report):
    """Return why a phase failed, in a line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr)).strip().partition("\n")[0]


def outcome(reports):
    """Return how a test ended by the reports of its phases, or of its collection."""
    failed = {report.when for report in reports if report.failed}
    if failed & {"call", "???"}:
        return "failed"
    if failed:
        return "error"
    return "skipped" if any(report.skipped for report in reports) else "passed"
