from __future__ import annotations

import subprocess
import sys

import pytest
from django.conf import settings

from cluster.version import VERSION, is_newer


@pytest.mark.parametrize(
    ("one", "other", "newer"),
    [
        ("0.2.0", "0.1.0", True),
        ("0.1.0", "0.1.0", False),
        ("0.1.0", "0.2.0", False),
        ("0.10.0", "0.9.9", True),
        ("1.0", "1", False),
        ("1.0.1", "1", True),
        ("1.0.0rc1", "1.0.0", False),
        ("0.1.0", "", True),
        ("", "0.1.0", False),
        ("nonsense", "0.1.0", False),
    ],
)
def test_versions_have_an_order(one, other, newer):
    assert is_newer(one, other) == newer


def test_the_command_says_the_version():
    command = [sys.executable, "manage.py", "--version"]
    done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=True)
    assert done.stdout == f"volcano-ui {VERSION}\n"


@pytest.mark.django_db
def test_pages_and_the_api_say_the_version(admin_client):
    from apiserver import health

    assert f"volcano-ui {VERSION}" in admin_client.get("/access/").content.decode()
    assert health.VERSION.endswith(f"+volcano-ui.{VERSION}")
