from __future__ import annotations

import re

from django.conf import settings

ROOT = settings.BASE_DIR
PRODUCT = ["volcano_ui", "cluster", "scheduler", "jobs", "queues", "dashboard", "kube"]


def test_every_setting_is_documented():
    sources = [file.read_text() for package in PRODUCT for file in (ROOT / package).rglob("*.py")]
    read = {name for text in sources for name in re.findall(r"\benv\.\w+\(\s*\"([A-Z_]+)\"", text)}
    documented = set(re.findall(r"`VOLCANO_UI_([A-Z_]+)`", (ROOT / "docs" / "settings.md").read_text()))
    assert "PORT" in read
    assert read | {"DATABASE_URL"} == documented
