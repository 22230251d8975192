"""`manage.py loginlink`: print a new one-time link."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from cluster.access import accounts, logins, site
from cluster.management.commands.kubeconfig import explained


class Command(BaseCommand):
    """Print a link that logs a user in once, within fifteen minutes."""

    help = "Print a link that logs a user in, once and within fifteen minutes; by default the administrator."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", nargs="?", default="", help="whom the link logs in")
        parser.add_argument("--url", default="", help="the address of the site")

    def handle(self, *args: Any, **options: Any) -> None:
        with explained():
            status = site.current()
            user = accounts.find_user(options["user"]) if options["user"] else None
            if user is not None and not user.is_active:
                raise CommandError(f'The user "{user.username}" is deactivated; an administrator can change that.')
            link = logins.login_link(options["url"] or status.site.pages, user)
        if status.message:
            self.stderr.write(status.message)
        self.stdout.write(link)
