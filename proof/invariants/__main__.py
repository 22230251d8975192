"""`python -m proof.invariants DATA`: judge the log of a state directory; without one, list what is judged.

The history has to be whole: where retention removed its beginning, that is
what is found. Whether the cluster is at rest only its owner knows: --settled
asks for what must hold then.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from proof.invariants import INVARIANTS, Broken, Judge


def main() -> None:
    options = _options()
    if options.data is None:
        sys.stdout.writelines(f"{each.name:<36}{each.meaning}\n" for each in INVARIANTS)
        return
    os.environ["VOLCANO_UI_DATA"] = str(Path(options.data).absolute())
    os.environ["DJANGO_SETTINGS_MODULE"] = "volcano_ui.settings"
    import django

    django.setup()
    try:
        judge = _judge(settled=options.settled)
    except Broken as broken:
        sys.exit(str(broken))
    sys.stdout.write(f"{judge.revision} changes judged, every invariant holds\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", help="state directory of a system")
    parser.add_argument("--settled", action="store_true", help="nothing moves any more: judge the end, too")
    return parser.parse_args()


def _judge(*, settled: bool) -> Judge:
    from cluster import clock
    from cluster.store import store

    judge = Judge()
    while changes := store.changes(judge.revision, limit=4000):
        for change in changes:
            judge.take(change)
    judge.finish()
    if settled:
        judge.settle(clock.milliseconds())
    return judge


if __name__ == "__main__":
    main()
