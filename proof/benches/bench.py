"""`make bench`: bring the whole system up on a state directory of its own and measure it.

Prints a table and writes the same as JSON. Options choose parts, so that one
number can be asked for again: `make bench ARGS="--only shapes --shape 500x20"`.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from proof.systems.system import System

Figures = Mapping[str, Any] | None  # None: what is measured is not installed

PARTS = (
    "start",
    "idle",
    "process",
    "live",
    "api",
    "watching",
    "posting",
    "lists",
    "decisions",
    "durability",
    "mirror",
    "bulk",
    "shapes",
    "page",
    "restart",
    "sweep",
)
EXTRA = ("in-place", "beside-volcano")  # parts that want more than this machine has by itself
DATABASES = ("sqlite", "postgresql")  # on which posting is measured


def main() -> None:
    options = _options()
    results: dict[str, Any] = {"machine": f"{os.cpu_count()} cores, Python {platform.python_version()}"}
    with tempfile.TemporaryDirectory(prefix="volcano-ui-bench-") as folder:
        data = Path(folder) / "data"
        _use(data)
        for name, figures in _measured(options, data):
            results[name] = figures
            _print({name: figures})
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=(*PARTS, *EXTRA), help="measure this part (repeatable)")
    parser.add_argument(
        "--shape", action="append", help="10000x1, 500x20, 20x500 or 1x10000; beside Volcano any (repeatable)"
    )
    parser.add_argument("--database", action="append", choices=DATABASES, help="of posting (repeatable)")
    parser.add_argument("--nodes", type=int, default=1000, help="simulated nodes")
    parser.add_argument("--pods", type=int, default=20_000, help="that a mirror shows")
    parser.add_argument("--repetitions", type=int, default=3, help="of what is measured beside Volcano")
    parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_args()


def _use(data: Path) -> None:
    """Point this process's Django at the measured system's state directory, before it is loaded."""
    os.environ["VOLCANO_UI_DATA"] = str(data)
    os.environ["DJANGO_SETTINGS_MODULE"] = "volcano_ui.settings"
    # Playwright's sync API keeps an event loop in this thread; nothing else runs in it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    import django

    django.setup()
    logging.getLogger("httpx").setLevel(logging.WARNING)


def _measured(options: argparse.Namespace, data: Path) -> Iterator[tuple[str, Figures]]:
    """Yield each part's figures as soon as they are there."""
    from proof.benches import decisions, durability, lists, posting

    parts = options.only or PARTS
    if "posting" in parts:
        for database in options.database or DATABASES:
            yield f"posting_{database}", posting.run(data.parent, database, options.nodes)
    if "lists" in parts:
        yield "lists", lists.run(data.parent / "lists")
    if "decisions" in parts:
        yield "decisions", decisions.run()
    if "durability" in parts:
        yield "durability", durability.run()
    if set(parts) - {"posting", "lists", "decisions", "durability"}:
        yield from _of_one_system(parts, options, data)


def _of_one_system(parts: Collection[str], options: argparse.Namespace, data: Path) -> Iterator[tuple[str, Figures]]:
    """Yield the figures of the parts that share a system."""
    from proof.benches import (
        api,
        beside_volcano,
        bulk,
        in_place,
        live,
        measure,
        mirror,
        page,
        process,
        restart,
        shapes,
        sweep,
        watching,
    )
    from proof.invariants import Judge
    from proof.systems.system import System

    system = System(data, nodes=options.nodes)
    judge = Judge()
    runs: list[tuple[str, str, Callable[[], Figures]]] = [
        ("start", "start", lambda: _restart(system)),
        ("idle", "idle", lambda: measure.idle(system)),
        ("process", "process", lambda: process.run(system)),
        ("live", "live", lambda: live.run(system)),
        ("api", "api", lambda: api.run(system)),
        ("watching", "watching", lambda: watching.run(system)),
        ("mirror", f"mirror_{options.pods}_pods", lambda: mirror.run(system, options.pods)),
        ("bulk", "bulk_5000", lambda: bulk.run(system)),
        *(("shapes", shape, partial(shapes.run, system, shape, judge)) for shape in options.shape or shapes.SHAPES),
        ("page", "page_of_10000_pods", lambda: page.run(system)),
        ("restart", "restart_1000x20", lambda: restart.run(system, judge)),  # its pods run on
        ("sweep", "sweep_10000", lambda: sweep.run(system)),  # its jobs wait on
        ("in-place", "in_place", lambda: in_place.run(system)),
        ("beside-volcano", "beside_volcano", lambda: beside_volcano.run(system, options.shape, options.repetitions)),
    ]
    with system:
        for part, name, run in runs:
            if part in parts:
                yield name, run()
        size = sum(file.stat().st_size for file in data.glob("db.sqlite3*"))
        yield "database", {"size_mb": round(size / 1e6)}


def _restart(system: System) -> dict[str, float]:
    figures = {"first_start_s": round(system.started_s, 1), "stop_s": round(system.stop(), 1)}
    system.start()
    return figures | {"second_start_s": round(system.started_s, 1)}


def _print(value: Mapping[str, Any], indent: int = 0) -> None:
    write = sys.stdout.write
    for key, item in value.items():
        if isinstance(item, dict):
            write(f"{' ' * indent}{key}\n")
            _print(item, indent + 2)
        else:
            write(f"{' ' * indent}{key:<{34 - indent}}{item}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
