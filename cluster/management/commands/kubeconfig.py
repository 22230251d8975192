"""`manage.py kubeconfig`: print what kubectl needs to come in."""

from __future__ import annotations

import os
import re
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from cluster import clock
from cluster.access import CONSOLE, accounts, kubeconfig, site, tokens
from cluster.access.site import Site
from cluster.access.tokens import Issued
from cluster.management.embedded import only_embedded
from kube.errors import ApiError
from kube.meta import timestamp

UNITS = {"m": tokens.MINUTE_S, "h": 3600, "d": tokens.DAY_S}


class Command(BaseCommand):
    """Print a kubeconfig with the API's authority and a new token; nothing of the token is logged."""

    help = "Print a kubeconfig with a new token; by default the first administrator's, for 30 days."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        holder = parser.add_mutually_exclusive_group()
        holder.add_argument("--user", default="", help="whose token it holds")
        holder.add_argument("--service-account", default="", metavar="NAMESPACE/NAME", help="whose token it holds")
        parser.add_argument("--server", default="", help="the API's address, such as https://host:8443")
        parser.add_argument("--expires", default="30d", help="how long it works: 10m to 365d (m, h or d)")
        parser.add_argument("--file", type=Path, help="write it there, for its owner only, instead of printing it")

    def handle(self, *args: Any, **options: Any) -> None:
        only_embedded("it gives kubeconfigs itself")
        lifetime_s = seconds(options["expires"])
        with explained():
            server, current_site = api(self, options["server"])
            issue, name, namespace = _holder(options)
            authority, called = site.authority(current_site), kubeconfig.name(server)
            # The token comes last: one that could not be handed over would stay valid.
            with self._target(options["file"]) as stream:
                issued = issue(lifetime_s)
                text = kubeconfig.text(server, authority, name, issued.secret, called=called, namespace=namespace)
                stream.write(text)
        whose = "by administrators" if options["service_account"] else "on the page “Connect”, or by administrators"
        self.stderr.write(
            f"A token of {name} until {timestamp(issued.expires)}, for {server}. It can be revoked {whose} on “Access”."
        )

    @contextmanager
    def _target(self, file: Path | None) -> Iterator[IO[str]]:
        """Open where the kubeconfig goes to; a file is its owner's alone."""
        if file is None:
            yield self.stdout  # type: ignore[misc]  # it writes as a stream does
            return
        try:
            descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}. Choose another --file.") from None
        with os.fdopen(descriptor, "w") as stream:
            os.fchmod(descriptor, 0o600)
            yield stream


def api(command: BaseCommand, url: str) -> tuple[str, Site]:
    """Return the API's address, as it was given or as the site has it, and the site; a site that does not run is said so."""
    status = site.current()
    if status.message:
        command.stderr.write(status.message)
    server = url or status.site.api
    if not re.fullmatch(r"https://[^\s/@]+/?", server):
        raise CommandError(f"--server is {server!r}; give it as https://host:port.")
    return server.rstrip("/"), status.site


def _holder(options: dict[str, Any]) -> tuple[Callable[[int], Issued], str, str]:
    """Return how to make the token for a number of seconds, whose it is, and the namespace to begin in."""
    title = kubeconfig.token_name(clock.milliseconds())
    if account := options["service_account"]:
        namespace, _, name = account.partition("/")
        if not namespace or not name:
            raise CommandError(f"--service-account is {account!r}; give it as NAMESPACE/NAME.")
        if tokens.service_account(namespace, name) is None:
            raise CommandError(
                f'There is no service account "{name}" in {namespace}; make it with: '
                f"kubectl create serviceaccount {name} -n {namespace}"
            )
        return partial(tokens.issue_for_account, CONSOLE, namespace, name, title), name, namespace
    user = accounts.find_user(options["user"]) if options["user"] else accounts.ensure_administrator()
    return partial(tokens.issue, CONSOLE, user, title), user.username, "default"


@contextmanager
def explained() -> Iterator[None]:
    """Turn what can go wrong into a sentence with the remedy."""
    try:
        yield
    except ApiError as error:
        raise CommandError(error.message) from None
    except DatabaseError as error:
        raise CommandError(
            f"The database cannot be used: {str(error).strip()}. Is this the state directory that “{settings.UP_COMMAND}” runs on?"
            " Set VOLCANO_UI_DATA (or DATABASE_URL) as there; a new one is prepared by that command."
        ) from None
    except (ImproperlyConfigured, OSError) as error:
        raise CommandError(str(error)) from None


def seconds(text: str, most: str = "365d") -> int:
    """Return how long a token is to work; CommandError for less than ten minutes, or more than the most."""
    match = re.fullmatch(r"(\d{1,9})([mhd])", text)
    lifetime_s = int(match[1]) * UNITS[match[2]] if match else 0
    if not tokens.LEAST_S <= lifetime_s <= int(most[:-1]) * UNITS[most[-1]]:
        raise CommandError(f"--expires is {text!r}; give it as a number with m, h or d, from 10m to {most}.")
    return lifetime_s
