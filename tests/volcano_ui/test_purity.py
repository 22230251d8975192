"""The modules that architecture.md calls pure can be imported where there is neither Django nor Celery nor Redis."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
CONTRACT = next(contract for contract in CONTRACTS if contract.get("id") == "purity")

# Imports the modules named by its arguments, and what is in them if they are packages.
IMPORTER = """
import importlib, pkgutil, sys

forbidden = frozenset(sys.argv[1].split(","))

class Refusal:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in forbidden:
            raise ImportError(f"{name} must not be imported")

sys.meta_path.insert(0, Refusal())
for name in sys.argv[2:]:
    module = importlib.import_module(name)
    for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}."):
        importlib.import_module(found.name)
"""


def imported(*modules):
    """What an interpreter of its own says that imports modules without the forbidden ones."""
    command = [sys.executable, "-c", IMPORTER, ",".join(CONTRACT["forbidden_modules"]), *modules]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_pure_modules_need_no_framework_and_one_that_needs_one_is_found_out():
    done = imported(*CONTRACT["source_modules"])
    assert (done.returncode, done.stderr) == (0, "")
    assert "django must not be imported" in imported("cluster.store").stderr


def test_the_rules_that_the_architecture_names_are_held_to_it_without_exceptions():
    assert not {"allow_indirect_imports", "ignore_imports", "unmatched_ignore_imports_alerting"} & CONTRACT.keys()
    rules = "jobs.controller jobs.lifecycle jobs.rules queues.rules cluster.rules scheduler.cycle scheduler.engine"
    assert set(rules.split()) <= set(CONTRACT["source_modules"])
