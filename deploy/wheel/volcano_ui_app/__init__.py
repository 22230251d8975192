"""The wheel's one package: what a clone holds, in a folder of its own.

Packages named `jobs`, `queues` or `node` in somebody's site-packages would be in the way of others of
these names, and those in ours. Only processes of volcano-ui have this folder on their path.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Run the command `volcano-ui`."""
    sys.path.insert(0, str(Path(__file__).parent))
    from volcano_ui import cli

    cli.main()
