from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command

from apiserver import reference
from kube import resources


def test_every_resource_and_subresource_is_in_the_reference():
    page = reference.text("\nwritten by hand\n")
    for resource in resources.served():
        for name in (resource.plural, *(f"{resource.plural}/{part.name}" for part in resource.parts)):
            assert f"| `{name}` |" in page
    assert page.endswith("## Differences\n\nwritten by hand\n")


def test_an_outdated_reference_is_noticed(tmp_path, settings):
    settings.BASE_DIR = tmp_path
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "kubernetes-api-differences.md").write_text("# Title\n\nSome.\n")
    with pytest.raises(CommandError, match="out of date"):
        call_command("apidocs", "--check", stdout=io.StringIO())
    call_command("apidocs")
    call_command("apidocs", "--check")
    assert "Some." in (tmp_path / "docs" / "kubernetes-api.md").read_text()
