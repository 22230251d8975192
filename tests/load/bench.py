"""`make bench`: bring the whole system up on a state directory of its own and measure it.

Prints a table and writes the same as JSON. Options choose parts, so that one
number can be asked for again: `make bench ARGS="--only shapes --shape 500x20"`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path

PARTS = ("start", "idle", "shapes", "process", "live")


def main():
    options = _options()
    with tempfile.TemporaryDirectory(prefix="volcano-ui-bench-") as folder:
        data = Path(folder) / "data"
        _use(data)
        results = {"machine": f"{os.cpu_count()} cores, Python {platform.python_version()}"}
        results |= _measure(options, data)
    _print(results)
    if options.json:
        Path(options.json).write_text(json.dumps(results, indent=2) + "\n")


def _options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=PARTS, help="measure this part (repeatable)")
    parser.add_argument("--shape", action="append", help="10000x1, 500x20, 20x500 or 1x10000 (repeatable)")
    parser.add_argument("--nodes", type=int, default=1000, help="simulated nodes")
    parser.add_argument("--json", help="write the figures to this file")
    return parser.parse_args()


def _use(data):
    """Point this process's Django at the measured system's state directory, before it is loaded."""
    os.environ["VOLCANO_UI_DATA"] = str(data)
    os.environ["DJANGO_SETTINGS_MODULE"] = "volcano_ui.settings"
    import django

    django.setup()


def _measure(options, data):
    from tests.load import live, measure, process, shapes
    from tests.system.harness import System

    parts = options.only or PARTS
    results = {}
    system = System(data, nodes=options.nodes)
    with system:
        if "start" in parts:
            results["start"] = {"first_start_s": round(system.started_s, 1)}
            results["start"]["stop_s"] = round(system.stop(), 1)
            system.start()
            results["start"]["second_start_s"] = round(system.started_s, 1)
        if "idle" in parts:
            results["idle"] = measure.idle(system)
        if "process" in parts:
            results["process"] = process.run(system)
        if "live" in parts:
            results["live"] = live.run(system)
        if "shapes" in parts:
            results["shapes"] = {shape: shapes.run(system, shape) for shape in options.shape or shapes.SHAPES}
            size = sum(file.stat().st_size for file in data.glob("db.sqlite3*"))
            results["database_mb"] = round(size / 1e6)
    return results


def _print(value, indent=0):
    write = sys.stdout.write
    for key, item in value.items():
        if isinstance(item, dict):
            write(f"{' ' * indent}{key}\n")
            _print(item, indent + 2)
        else:
            write(f"{' ' * indent}{key:<{34 - indent}}{item}\n")


if __name__ == "__main__":
    main()
