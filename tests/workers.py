"""Which tests a worker process of pytest-xdist runs together, and what begins first.

A file's tests share a worker, for their fixtures. Those that start whole systems share one, and those with a browser
another: each of them keeps more than one process busy. Drills, which wait more than they compute, are handed out file
by file.
pytest-xdist's own groups are written into names in a way that pytest 9.2
ignores, hence a scheduler that goes by the files.
"""

import itertools

from xdist.scheduler import LoadScopeScheduling

SHARED = {"browsers": ("tests/browser/", "tests/dashboard/browser/"), "systems": ("tests/system/", "tests/contract/")}
# They begin before others, so that no worker is left with one of them at the end.
LONG = (
    "tests/clusters/test_in_place.py",
    "tests/clusters/test_parts.py",
    "tests/volcano_ui/test_up.py",
    "tests/apiserver/test_generated.py",
    "tests/node/test_agent.py",
    "tests/apiserver/test_rights.py",
    "tests/node/test_joined.py",
    "tests/simulation/test_simulation.py",
    "tests/node/test_mounts.py",
    "tests/frontend/test_frontend.py",
    "tests/cluster/store/test_machine.py",
    "tests/node/test_shim.py",
    "tests/apiserver/test_execs.py",
    "tests/jobs/test_bad_luck.py",
    "tests/volcano_ui/test_supervisor.py",
    "tests/scheduler/test_place.py",
    "tests/node/test_processes.py",
    "tests/node/test_images.py",
)


class ByFile(LoadScopeScheduling):
    """Hands out files, in the order in which they were collected."""

    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        return next((name for name, places in SHARED.items() if file.startswith(places)), file)


def turn(nodeid):
    """Return what tests are sorted by: what is shared folder by folder, then the long files."""
    file = nodeid.partition("::")[0]
    first = (*itertools.chain(*SHARED.values()), *LONG)
    return next((number for number, name in enumerate(first) if file.startswith(name)), len(first))
