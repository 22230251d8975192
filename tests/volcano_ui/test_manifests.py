"""What every tool must be able to read of deploy/kubernetes."""

from __future__ import annotations

import pytest
import yaml
from django.conf import settings

FOLDER = settings.BASE_DIR / "deploy" / "kubernetes"
FILES = {str(path.relative_to(FOLDER)): path for path in sorted(FOLDER.rglob("*.yaml"))}


@pytest.mark.parametrize("path", FILES.values(), ids=FILES)
def test_no_file_deletes_several_objects(path):
    """Kustomize before 5.7, as in kubectl until 1.34, panics on a file with several `$patch: delete`."""
    documents = yaml.safe_load_all(path.read_text())
    assert sum(isinstance(each, dict) and each.get("$patch") == "delete" for each in documents) <= 1
