"""Where people and programs reach the system, as the `up` that runs has written it down for every other command.

A command is typed in another shell than `up` was, perhaps without the ports and names that this was given: what the
settings of the command say is asked only where no `up` has run yet.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from django.conf import settings

from cluster import issuing, pid_lock
from cluster.access import certificates

FILE = "site.json"
LOCK = "run/up.lock"  # which an `up` has locked for as long as it runs


class Site(NamedTuple):
    """The addresses of the pages and of the API, and the file with the API's authority ("" for one that clients know)."""

    pages: str
    api: str
    authority: str


class SiteStatus(NamedTuple):
    """A site, and a message for people where no `up` runs there, "" where one does."""

    site: Site
    message: str


def of_settings() -> Site:
    """Return what the settings of this process say; the certificates are made where there are none."""
    authority = certificates.current().ca if settings.TARGET is None else None
    return Site(
        pages_address(
            settings.HOSTS, settings.LISTEN, settings.PORT, https=settings.HTTPS, proxied=bool(settings.TRUSTED_PROXIES)
        ),
        api_address(settings.HOSTS, settings.LISTEN, settings.API_PORT),
        str(authority or ""),
    )


def write() -> None:
    """Write down what the settings say; for an `up`, which has the state directory to itself."""
    draft = settings.DATA / f"{FILE}.new"
    draft.write_text(json.dumps(of_settings()._asdict()))
    draft.replace(settings.DATA / FILE)


def current() -> SiteStatus:
    """Return where the system is that runs, or where it ran last."""
    written: Site | None
    try:
        written = Site(**json.loads((settings.DATA / FILE).read_text()))
    except (OSError, ValueError, TypeError):
        written = None
    # Of a state directory that was moved here, or restored, the authority is elsewhere.
    if written and written.authority and not Path(written.authority).exists():
        written = None
    if pid_lock.is_held(settings.DATA / LOCK) and written:
        return SiteStatus(written, "")
    how = "that it had last" if written else "of the settings"
    return SiteStatus(
        written or of_settings(),
        f"No “{settings.UP_COMMAND}” runs on the state directory {settings.DATA}; this is for the addresses {how}.",
    )


def authority(site: Site) -> str:
    """Return the certificate of the API's authority as kubeconfigs carry it, "" for one that clients know."""
    return Path(site.authority).read_text() if site.authority else ""


def api_address(hosts: Sequence[str], listen: str, port: int) -> str:
    """Return where clients reach the API: by the first of the hosts that is a name, otherwise on this machine."""
    return f"https://{_bracketed(name_of(hosts) or local(listen))}:{port}"


def pages_address(hosts: Sequence[str], listen: str, port: int, *, https: bool, proxied: bool) -> str:
    """Return where people reach the pages, by the same name.

    A proxy in front, needed for TLS and for a server that listens on loopback, is at the port of its scheme.
    """
    name = name_of(hosts)
    if not name:
        return f"http://{_bracketed(local(listen))}:{port}"
    if https:
        return f"https://{_bracketed(name)}"
    address = issuing.address(listen)
    is_loopback = listen == "localhost" if address is None else address.is_loopback
    return f"http://{_bracketed(name)}" + ("" if proxied or is_loopback else f":{port}")


def local_pages() -> str:
    """Return where this machine reaches the pages of this process's settings."""
    return f"http://{_bracketed(local(settings.LISTEN))}:{settings.PORT}"


def local_api() -> str:
    """Return where this machine reaches the API of this process's settings."""
    return f"https://{_bracketed(local(settings.LISTEN))}:{settings.API_PORT}"


def name_of(hosts: Sequence[str]) -> str:
    """Return the first of the hosts that is a name, and not a pattern of names; "" where none is."""
    return next((host for host in hosts if host != "*" and not host.startswith(".")), "")


def local(listen: str) -> str:
    """Return by which address this machine reaches what listens at one."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(listen, listen)  # noqa: S104


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
