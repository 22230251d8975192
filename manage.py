#!/usr/bin/env python3
"""Django's entry point; `manage.py up` starts the whole system."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "volcano_ui.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    if sys.argv[1:2] == ["--version"]:  # ours, and not Django's
        from cluster.version import VERSION

        print(f"volcano-ui {VERSION}")  # noqa: T201
        return
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"✗ {error}")


if __name__ == "__main__":
    main()
