from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from apiserver import reference
from kube import resources


def test_every_resource_and_subresource_is_in_the_reference():
    page = reference.text("")
    missing = [f"{resource.plural}/{part.name}" for resource in resources.served() for part in resource.parts]
    missing += [resource.plural for resource in resources.served()]
    assert [name for name in missing if f"| `{name}` |" not in page] == []


def test_the_reference_ends_with_the_differences():
    assert reference.text("\nwritten by hand\n").endswith("## Differences\n\nwritten by hand\n")


def test_an_outdated_reference_is_noticed(tmp_path, settings):
    settings.BASE_DIR = tmp_path
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "kubernetes-api-differences.md").write_text("# Title\n\nSome.\n")
    with pytest.raises(CommandError, match="out of date"):
        call_command("apidocs", "--check", stdout=io.StringIO())
    call_command("apidocs")
    call_command("apidocs", "--check")
    assert "Some." in (tmp_path / "docs" / "kubernetes-api.md").read_text()
