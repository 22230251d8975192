import re

import pytest
from django.conf import settings
from django.core.management import get_commands

ROOT = settings.BASE_DIR
# Subresources look like paths of the package of the same name.
NOT_FILES = {"jobs/status", "queues/status", "queues/state"}
PRODUCT = ["volcano_ui", "cluster", "scheduler", "jobs", "queues", "dashboard", "kube", "node", "apiserver"]
READMES = [ROOT / package / "README.md" for package in (*PRODUCT, "proof")]
DOCS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*.md"), *READMES]
DOTTED = re.compile(rf"`((?:{'|'.join(PRODUCT)})(?:\.\w+)+)`")
RESOURCES = {"jobs.batch", "jobs.batch.volcano.sh", "queues.scheduling.volcano.sh"}


def test_every_setting_is_documented():
    sources = [file.read_text() for package in PRODUCT for file in (ROOT / package).rglob("*.py")]
    read = {name for text in sources for name in re.findall(r"\benv\.\w+\(\s*\"([A-Z_]+)\"", text)}
    documented = set(re.findall(r"`VOLCANO_UI_([A-Z_]+)`", (ROOT / "docs" / "settings.md").read_text()))
    assert "PORT" in read
    assert read | {"DATABASE_URL"} == documented


def expanded(path):
    """Return the paths that braces stand for: `a/{b,c}.py` is two."""
    found = re.search(r"{([^{}]*)}", path)
    if not found:
        return [path]
    before, after = path[: found.start()], path[found.end() :]
    return [each for word in found[1].split(",") for each in expanded(before + word + after)]


@pytest.mark.parametrize("file", DOCS, ids=lambda file: str(file.relative_to(ROOT)))
def test_what_a_document_names_exists(file):
    text = file.read_text()
    folders = {folder.name for folder in ROOT.iterdir() if folder.is_dir()}
    named = {path for path in re.findall(r"`([\w.{},*-]+/[\w./{},*-]*)`", text) if path not in NOT_FILES}
    paths = [each for path in named if path.partition("/")[0] in folders for each in expanded(path)]
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", text) if "://" not in link]
    assert [path for path in paths if not any(ROOT.glob(path.rstrip("/")))] == []
    assert [link for link in links if not (file.parent / link).exists()] == []


@pytest.mark.parametrize("file", DOCS, ids=lambda file: str(file.relative_to(ROOT)))
def test_files_without_their_folder_and_functions_that_a_document_names_exist(file):
    """A bare name means a file of the package whose page it is, or of the folder of a path on the same line."""
    around = (
        [file.parent] if file in READMES else [ROOT / package for package in (*PRODUCT, "proof", "frontend", "tests")]
    )
    for line in file.read_text().splitlines():
        paths = [ROOT / path for path in re.findall(r"`([a-z_]+/[\w./-]+)`", line)]
        folders = [*around, *(path if path.is_dir() else path.parent for path in paths)]
        for name, function in re.findall(r"`([\w/.-]+\.(?:py|js))`(?:: `(\w+)`)?", line):
            found = [ROOT / name] if (ROOT / name).exists() else [each for at in folders for each in at.rglob(name)]
            assert found, f"{name} in: {line}"
            assert not function or any(function in each.read_text() for each in found), f"{name}: {function}"


@pytest.mark.parametrize("package", PRODUCT)
def test_the_page_of_a_package_tells_all_of_its_rooms(package):
    text = (ROOT / package / "README.md").read_text().partition("\nStart with")[0]
    named = {
        room for line in re.findall(r"^\| (`.*?`) \|", text, re.MULTILINE) for room in re.findall(r"`([\w./]+)`", line)
    }
    rooms = {f"{each.parent.name}/" for each in (ROOT / package).glob("*/__init__.py")}
    assert [room for room in named if not (ROOT / package / room).exists()] == []
    assert rooms - named - {"management/", "migrations/", "sqlite/", "templatetags/"} == set()


def is_module_or_in_one(name):
    """Tell whether a dotted name is a module of ours, or something that the innermost one of them mentions."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        path = ROOT.joinpath(*parts[:length])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.exists():
                return length == len(parts) or parts[length] in file.read_text()
    return False


def test_modules_that_documents_and_docstrings_name_exist():
    sources = [file for package in PRODUCT for file in (ROOT / package).rglob("*.py")]
    named = {(file, name) for file in [*DOCS, *sources] for name in DOTTED.findall(file.read_text())}
    assert len(named) > 20
    wrong = [
        f"{file.relative_to(ROOT)}: {name}"
        for file, name in named
        if name not in RESOURCES and not is_module_or_in_one(name)
    ]
    assert sorted(wrong) == []


def test_commands_in_documents_exist():
    text = "\n".join(file.read_text() for file in DOCS)
    recipes = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"(?:`|^|&& )make ([a-z0-9-]+)\b", text, re.MULTILINE)) <= recipes
    assert set(re.findall(r"manage\.py ([a-z]+)\b", text)) <= get_commands().keys()
