"""What is locked, and what a clone may not carry."""

import json
import re

import pytest
from django.conf import settings
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = settings.BASE_DIR
LOCKS = ["requirements.txt", "requirements-build.txt", "requirements-dev.txt", "requirements-programs.txt"]


@pytest.mark.parametrize("name", LOCKS)
def test_what_is_asked_for_is_locked_and_each_is_pinned_with_hashes(name):
    text, requirements = (ROOT / name).read_text(), requirements_of(name)
    blocks = re.split(r"\n(?=[a-z0-9])", text, flags=re.IGNORECASE)
    pinned = [block for block in blocks if not block.startswith("#")]
    assert len(pinned) > 5
    assert all(re.match(r"[\w.\[\]-]+==\S+ \\\n +--hash=sha256:", block) for block in pinned)
    locked = dict(re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE))
    assert {canonicalize_name(each.name) for each in requirements} <= locked.keys()
    assert [str(one) for one in requirements if not one.specifier.contains(locked[canonicalize_name(one.name)])] == []


def requirements_of(name):
    """Return the requirements of a lock's source."""
    lines = (ROOT / name).with_suffix(".in").read_text().splitlines()
    return {Requirement(line) for line in (line.partition("#")[0].strip() for line in lines) if line[:1].isalnum()}


def npm_requirements():
    wanted = json.loads((ROOT / "package.json").read_text())
    return wanted["dependencies"].keys() | wanted["devDependencies"].keys()


def go_modules():
    """Return the modules of the programs that a Kubernetes of the tests is made of."""
    for file in (ROOT / "proof" / "kubernetes" / "programs").glob("*/go.mod"):
        text = file.read_text()
        block = re.search(r"^tool (?:\((.*?)\)|(\S+))", text, re.DOTALL | re.MULTILINE)
        tools = " ".join(filter(None, block.groups())).split()
        modules = re.findall(r"^\s+(\S+) v\S+", text, re.MULTILINE)
        yield from {each for each in modules for tool in tools if f"{tool}/".startswith(f"{each}/")}


def test_every_package_that_is_asked_for_is_explained_and_no_other():
    text = (ROOT / "docs" / "design" / "dependencies.md").read_text().partition("\n## Weighed")[0]
    explained = [
        name for row in re.findall(r"^\| (`[^|]+) \|", text, re.MULTILINE) for name in re.findall(r"`([^`]+)`", row)
    ]
    requirements = [each.name for name in LOCKS for each in requirements_of(name)]
    assert sorted(explained) == sorted([*requirements, *npm_requirements(), *go_modules()])


@pytest.mark.parametrize("name", [*LOCKS, "package-lock.json", ".npmrc"])
def test_locks_name_no_registry(name):
    assert not re.search(r"\"resolved\"|index-url|find-links|trusted-host|registry\s*=", (ROOT / name).read_text())


def test_npm_packages_are_pinned_exactly_and_have_hashes():
    packages = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    assert [name for name, entry in packages.items() if name and "integrity" not in entry] == []
    wanted = json.loads((ROOT / "package.json").read_text())
    versions = [*wanted["dependencies"].values(), *wanted["devDependencies"].values()]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)


def test_static_files_in_templates_exist():
    texts = [file.read_text() for file in (ROOT / "templates").rglob("*.html")]
    used = {name for text in texts for name in re.findall(r"""{% static ["']([^"']+)["'] %}""", text)}
    built = {"build/main.js", "build/styles/main.css", "build/icons.svg"}
    assert {name for name in used - built if not (ROOT / "static" / name).exists()} == set()
