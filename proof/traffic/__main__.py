"""`python -m proof.traffic record [name…]` records what clients ask; `touched` notes which tests ask it, `table` writes the page."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
import tempfile
from pathlib import Path

import django

# Whether Volcano's webhooks are asked meanwhile, which those want that change its objects.
SESSIONS = {
    "kubectl": False,
    "kubectl_custom": False,
    "kubectl_access": False,
    "kubectl_volcano": True,
    "vcctl": True,
    "client_go": True,
    "python_client": True,
    "helm": True,
}


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    recording = commands.add_parser("record", help="run the sessions against a kube-apiserver, and keep what was asked")
    recording.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join(SESSIONS)}; all by default")
    commands.add_parser("touched", help="run tests/apiserver, and keep which tests ask what is recorded")
    commands.add_parser("table", help="write docs/kubernetes-traffic.md")
    arguments = parser.parse_args()
    django.setup()
    if arguments.command == "record":
        for name in arguments.names or SESSIONS:
            record(name)
        return
    from proof.traffic import table, touched  # which want settings

    if arguments.command == "touched":
        touched.collect()
    table.write()


def record(name: str) -> None:
    """Run a session on a cluster of its own."""
    logging.basicConfig(level=logging.INFO, format="  %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    from proof.traffic import exchange, stage  # which want settings

    say(name)
    session = importlib.import_module(f"proof.traffic.sessions.{name}")
    with tempfile.TemporaryDirectory() as folder, stage.opened(Path(folder), webhooks=SESSIONS[name]) as opened:
        session.play(opened)
        exchanges = opened.recorder.recording()
    exchange.keep(name, exchanges)
    say(f"  {len(exchanges)} requests, {sum(each.times for each in exchanges)} with repetitions")


def say(line: str) -> None:
    """Tell whoever runs it how far it is."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "proof.settings")
    main()
