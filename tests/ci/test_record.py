import json

import pytest

from tests.tables import cases

EACH_OUTCOME = """
import pytest

@pytest.fixture
def broken(): raise ValueError

@pytest.fixture
def broken_at_its_end():
    yield
    raise ValueError

def test_passes(): pass
def test_fails(): assert False
def test_is_skipped(): pytest.skip("here")
def test_fails_before(broken): pass
def test_fails_after(broken_at_its_end): pass
"""
SKIPPED = "import pytest; pytest.skip('all of it', allow_module_level=True)"
FIXTURES = """
import time, pytest

@pytest.fixture(scope="module")
def inner():
    time.sleep(0.3)

@pytest.fixture(scope="module")
def outer(request):
    request.getfixturevalue("inner")
    yield
    time.sleep(0.1)

def test_one(outer): pass
def test_two(outer): pass
"""


@pytest.fixture
def record(project):
    """Run pytest on files; return the lines of tests that it records by their names, and the last line."""

    def run(files, *options):
        project.write(files)
        project.run(".venv/bin/pytest", "--record=record", "--randomly-seed=7", *options)
        *lines, last = map(json.loads, (project.folder / "record").read_text().splitlines())
        tests = {line["test"].rpartition("::")[2]: line for line in lines}
        assert len(tests) == len(lines)
        return tests, last

    return run


def outcomes(tests):
    return {name: test["outcome"] for name, test in tests.items()}


def phases(test):
    return [name for name in ("setup", "call", "teardown") if test[name] is not None]


@pytest.mark.parametrize("workers", ["0", "1"])
def test_each_test_has_a_line(record, workers):
    tests, last = record({"test_each.py": EACH_OUTCOME, "test_none.py": SKIPPED}, "-n", workers)
    assert outcomes(tests) == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_is_skipped": "skipped",
        "test_fails_before": "error",
        "test_fails_after": "error",
        "test_none.py": "skipped",
    }
    assert (tests["test_passes"]["reason"], tests["test_fails"]["reason"]) == ("", "assert False")
    assert phases(tests["test_passes"]) == ["setup", "call", "teardown"]
    assert phases(tests["test_fails_before"]) == ["setup", "teardown"]
    assert phases(tests["test_none.py"]) == []
    assert last == {"exit": 1, "seed": 7}


def test_fixtures_have_times_of_their_own(record):
    tests, _ = record({"test_fixtures.py": FIXTURES}, "-n", "1")
    first, second = tests.values()
    assert [each[:3] for each in first["fixtures"]] == [
        ["test_fixtures.inner", "module", "setup"],
        ["test_fixtures.outer", "module", "setup"],
    ]
    inner, outer = (each[3] for each in first["fixtures"])
    assert inner >= 0.3
    assert inner + outer <= first["setup"] + 0.001
    assert second["fixtures"][0][:3] == ["test_fixtures.outer", "module", "teardown"]
    assert 0.1 <= second["fixtures"][0][3] <= second["teardown"]


@cases("file, expected, happened", {
    "a crash": ("import os\ndef test_it(): os._exit(1)", {"test_it": "failed"}, ["setup"]),
    "a module that has an error": ("import nothing_such", {"test_other.py": "error"}, []),
})  # fmt: skip
def test_what_pytest_could_not_finish_has_no_teardown(record, file, expected, happened):
    tests, last = record({"test_one.py": "def test_one(): pass", "test_other.py": file}, "-n", "1")
    assert outcomes(tests) == {"test_one": "passed", **expected}
    assert [phases(tests[name]) for name in expected] == [happened]
    assert last["exit"] == 1


def test_there_is_no_last_line_when_pytest_does_not_get_to_its_end(project):
    project.write({"test_it.py": "import os\ndef test_it(): os._exit(1)"})
    status, _ = project.run(".venv/bin/pytest", "-n", "0", "--record=record")
    assert status == 1
    assert not (project.folder / "record").exists()


def test_nothing_is_measured_without_the_option(project):
    project.write(
        {
            "test_it.py": "def test_it(): pass",
            "conftest.py": """
def pytest_runtest_logreport(report):
    assert not hasattr(report, "fixtures")
""",
        }
    )
    status, _ = project.run(".venv/bin/pytest", "-n", "0")
    assert status == 0
