"""`manage.py agent`: run the pods that are bound to this machine."""

from __future__ import annotations

import logging
import socket
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from cluster import fingerprint
from cluster.management.embedded import only_embedded
from cluster.remote.http.request import Unreachable
from cluster.runtime.outage import Outage
from node import membership
from node.agent.daemon import Daemon
from node.agent.machine import valid_name
from node.joined import agent, joining
from node.joined.joining import JoinError, JoinOptions
from node.membership import Membership
from node.pods.cluster import Dismissed
from volcano_ui import heartbeat
from volcano_ui.process_exit import exit_at_once

RETRY_S = 2.0
log = logging.getLogger(__name__)


class Command(BaseCommand):
    help = "Run the pods that are bound to this machine: with --server as a node of the cluster there, which it joins."
    requires_system_checks: list[str] = []  # `up` has run them, and they would load every page

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--server", default="", help="join the cluster whose API is there, such as https://host:8443"
        )
        token = parser.add_mutually_exclusive_group()
        token.add_argument("--token", default="", help="the token to join with; users of this machine see it in ps")
        token.add_argument("--token-file", default="", help="a file with that token, or - for standard input")
        parser.add_argument(
            "--ca",
            default="",
            help="whom to believe: a file in PEM, or its fingerprint sha256:…; by default the system's authorities",
        )
        parser.add_argument("--name", default="", help="its name as a node; by default the host's")

    def handle(self, *args: Any, **options: Any) -> None:
        heartbeat.from_a_thread()
        join_options = _join_options(options)
        if not join_options.url and not (settings.DATA / membership.FILE).exists():
            only_embedded("it has nodes of its own")
            Daemon(settings.DATA, name=settings.NODE_NAME).run()
            exit_at_once()
        try:
            joined = _join(settings.DATA, join_options)
        except JoinError as error:
            raise CommandError(str(error)) from None
        daemon = agent.daemon(settings.DATA, joined)
        daemon.run()
        exit_at_once(1 if daemon.agent.is_dismissed else 0)


def _join_options(options: dict[str, Any]) -> JoinOptions:
    """Return the options of the cluster to join; those of the command go before the settings."""
    token = _token(options["token_file"]) if options["token_file"] else options["token"]
    return JoinOptions(
        options["server"] or settings.SERVER,
        token or settings.JOIN_TOKEN,
        _authority(options["ca"] or settings.SERVER_CA),
        options["name"] or settings.NODE_NAME,
    )


def _token(file: str) -> str:
    try:
        return (sys.stdin.read() if file == "-" else Path(file).read_text()).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"--token-file {file} cannot be read: {error}.") from None


def _authority(text: str) -> str:
    """Return a fingerprint, or the certificates in the named file."""
    if not text or fingerprint.FORM.fullmatch(text):
        return text
    try:
        certificates = Path(text).expanduser().read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(
            f"--ca is {text!r}, which cannot be read: {error}. Name a file in PEM, or give sha256:… as the page “Nodes” shows it."
        ) from None
    if not fingerprint.of(certificates):
        raise CommandError(f"--ca is {text!r}, in which there is no certificate in PEM.")
    return certificates


def _join(data: Path, join_options: JoinOptions) -> Membership:
    """Join the cluster; a machine that is a node already tries until it succeeds.

    Raise JoinError if a machine cannot join for the first time. One that was dismissed, and has no token to join
    again, is returned as it was.
    """
    hostname = valid_name(join_options.name or socket.gethostname())
    outage = Outage("joining the cluster", log)
    while True:
        try:
            joining_as = joining.begin(data, join_options)
            try:
                return joining.join(data, joining_as, hostname)
            except Dismissed as error:
                if not joining_as.has_joined:
                    raise JoinError(str(error)) from None
            return _join_anew(data, joining_as, join_options)
        except Unreachable as error:
            stored = membership.read(data)
            if stored is None or not stored.has_joined:
                raise JoinError(
                    f"{error}. Is it the address of the API, may this machine reach it, and does --ca say whom to believe?"
                ) from None
            outage.lasts(error)
            time.sleep(RETRY_S)


def _join_anew(data: Path, previous: Membership, join_options: JoinOptions) -> Membership:
    """Join with the token of the options, as the node's own is not valid any more; without success return it as it was."""
    if join_options.token:
        try:
            return joining.join(data, joining.with_token(previous, join_options), previous.name)
        except Dismissed:
            pass
    return previous
