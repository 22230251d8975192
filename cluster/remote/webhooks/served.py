"""What a server of the webhooks shows: the certificate that the Secret has, in files, as OpenSSL wants it."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from django.db import DatabaseError

from cluster import clock
from cluster.access import certificates
from cluster.remote.http.request import Unreachable
from cluster.remote.webhooks.keeper import Keeper, note
from cluster.remote.webhooks.keys import Keys
from cluster.store.connections import connected
from kube.errors import ApiError

LOOK_EVERY_S = 15.0  # as long as a leadership lasts
AGAIN_S = 2.0  # after something could not be done
log = logging.getLogger(__name__)


class Served:
    """The files of one process, kept for as long as it lives."""

    def __init__(self, keeper: Keeper, directory: Path, *, every_s: float = LOOK_EVERY_S) -> None:
        self._keeper, self._every_s = keeper, every_s
        self._keys: Keys | None = None
        self._loaded: x509.Certificate | None = None
        self._noted: str | None = None  # what was noted last
        self.certificate, self.key = directory / "tls.crt", directory / "tls.key"

    def await_first(self) -> None:
        """Return as soon as there is something to show, which the installation that leads makes."""
        if not self.look():
            log.info("waiting for a certificate from the installation that leads")
            while not self.look():
                time.sleep(AGAIN_S)

    async def keep(self, context: ssl.SSLContext) -> None:
        """Tell the cluster of the webhooks and show each new certificate, until cancelled."""
        while True:
            is_well = False
            try:
                is_well = await asyncio.to_thread(self.look)
                self.show(context)
                is_well = is_well and await asyncio.to_thread(self.publish)
            except Exception:  # such as a disk that is full; a certificate that is not renewed would end everything
                log.exception("the certificate could not be shown")
            await asyncio.sleep(self._every_s if is_well else AGAIN_S)

    def look(self) -> bool:
        """Ask the cluster what is to be shown; say whether it has answered with something."""
        now = datetime.fromtimestamp(clock.milliseconds() / 1000, UTC)
        keys = None
        with self._telling():
            keys = connected(self._keeper.look, now)
        if keys is not None:
            self._keys = keys
        return keys is not None

    def show(self, context: ssl.SSLContext | None = None) -> None:
        """Write the files, and have a context load them, if they are new.

        Called in the loop that greets clients, so that none of them comes between certificate and key.
        """
        if self._keys is None or self._loaded == self._keys.server[0]:
            return
        self.key.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        certificates.save(self.certificate, self.key, self._keys.server)
        if context is not None:
            context.load_cert_chain(self.certificate, self.key)
        self._loaded = self._keys.server[0]

    def publish(self) -> bool:
        """Publish the certificate and its authorities in the cluster; say whether that worked."""
        if self._keys is None:
            return False
        with self._telling():
            connected(self._keeper.publish, self._keys)
            self._tell("")
            return True
        return False

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Tell why the cluster or the database could not be asked; the next look tries again."""
        try:
            yield
        except (ApiError, Unreachable, DatabaseError) as error:
            self._tell(str(error))

    def _tell(self, trouble: str) -> None:
        """Log what is wrong and note it for the pages, unless it was told already; "" when all is well."""
        if trouble == self._noted:
            return
        if trouble:
            log.warning("the webhooks cannot be kept", extra={"error": trouble})
        with suppress(DatabaseError):
            connected(note, trouble)
        self._noted = trouble
