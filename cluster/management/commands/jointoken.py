"""`manage.py jointoken`: print what to type on a machine that is to become a node."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from cluster.access import CONSOLE, joining, site
from cluster.management.commands.kubeconfig import api, explained, seconds
from cluster.management.embedded import only_embedded
from kube.meta import timestamp

MOST = "30d"


class Command(BaseCommand):
    """Make a join token and print the command that uses it; nothing of the token is logged."""

    help = "Print the command by which another machine becomes a node of this cluster."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--node", default=joining.ANY, help="the node's name; by default the machine says it")
        parser.add_argument("--server", default="", help="the API's address there, such as https://host:8443")
        parser.add_argument("--expires", default="24h", help=f"how long it waits for its machine: 10m to {MOST}")

    def handle(self, *args: Any, **options: Any) -> None:
        only_embedded("its nodes are its own business")
        with explained():
            server, current_site = api(self, options["server"])
            issued = joining.invite(CONSOLE, options["node"], seconds(options["expires"], MOST))
            self.stdout.write(joining.command(server, site.authority(current_site), issued.secret, options["node"]))
        self.stderr.write(
            f"For one machine, until {timestamp(issued.expires)}. It can be revoked on the page “Access”."
        )
