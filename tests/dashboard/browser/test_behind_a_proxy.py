"""A page that came through a proxy: where that names another host than the browser did, the page says so."""

from __future__ import annotations

import contextlib
import socket

from playwright.sync_api import expect

from proof.harness.proxy import CuttingProxy
from tests.dashboard.pages.conftest import put, queue, reader
from tests.tables import cases


class Proxy(CuttingProxy):
    """Hands on requests with the host as it came, `$http_host` of nginx, or without its port, `$host`."""

    def __init__(self, port, *, keeps_port):
        super().__init__(port)
        self.keeps_port = keeps_port

    def _pump(self, source, target, answers):
        named, port = f"Host: 127.0.0.1:{self.port}".encode(), f":{self.port}".encode()
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data if self.keeps_port else data.replace(named, named.removesuffix(port)))
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@cases("keeps_port, says", {
    "$http_host": (True, "live"),
    "$host": (False, "refused: the proxy changes Host"),
})  # fmt: skip
def test_a_proxy_that_changes_the_host_is_told(open_tab, site, keeps_port, says):
    admin = reader("admin", "superuser")
    put(queue("root", parent=""), queue("default"))
    with Proxy(site.port, keeps_port=keeps_port) as proxy:
        tab = open_tab(admin, f"http://127.0.0.1:{proxy.port}/queues/")
        expect(tab.locator("#live")).to_have_text(says)
