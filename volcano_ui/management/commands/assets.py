"""`manage.py assets` builds the front end if its source changed; --check and --fix run biome over it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError

from volcano_ui import assets


class Command(BaseCommand):
    help = "Build the front end if its source changed."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument("--check", action="store_true", help="only lint JavaScript and CSS")
        choice.add_argument("--fix", action="store_true", help="only format JavaScript and CSS and fix what can be")

    def handle(self, *, check: bool, fix: bool, **_: Any) -> None:
        try:
            if not check and not fix:
                assets.build(self._say)
            elif not assets.lint(self._say, fix=fix):
                sys.exit(1)
        except assets.AssetsError as error:
            raise CommandError(str(error)) from None

    def _say(self, line: str) -> None:
        self.stdout.write(f"• {line}")
