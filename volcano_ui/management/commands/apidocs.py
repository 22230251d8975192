"""`manage.py apidocs` writes docs/kubernetes-api.md from the resource table; --check says whether it is out of date."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from apiserver import reference


class Command(BaseCommand):
    help = "Write docs/kubernetes-api.md: what the Kubernetes API serves, verb by verb."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="only fail when the file is out of date")

    def handle(self, *, check: bool, **_: Any) -> None:
        docs = Path(settings.BASE_DIR) / "docs"
        page = docs / "kubernetes-api.md"
        differences = (docs / "kubernetes-api-differences.md").read_text(encoding="utf-8")
        wanted = reference.text(differences.partition("\n")[2])  # without its title
        if not check:
            page.write_text(wanted, encoding="utf-8")
        elif not page.exists() or page.read_text(encoding="utf-8") != wanted:
            raise CommandError("docs/kubernetes-api.md is out of date; run manage.py apidocs.")
