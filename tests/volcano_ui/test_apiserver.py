from __future__ import annotations

import socket
import ssl
import threading

import pytest

from cluster import certificates
from tests.system.harness import until
from volcano_ui.apiserver import keep_certificate


@pytest.fixture
def serial(settings, tmp_path):
    """Return the serial number of the certificate that a server with a kept context shows."""
    settings.DATA = tmp_path
    found = certificates.current()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(found.certificate, found.key)
    stopped = threading.Event()
    keeper = threading.Thread(target=keep_certificate, args=(context, stopped), kwargs={"every_s": 0.02})
    keeper.start()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            try:
                connection, _ = listener.accept()
                with context.wrap_socket(connection, server_side=True):
                    pass
            except ssl.SSLError:
                continue
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    client = ssl.create_default_context(cafile=str(found.ca))

    def ask():
        with (
            socket.create_connection(listener.getsockname()) as raw,
            client.wrap_socket(raw, server_hostname="localhost") as connection,
        ):
            return connection.getpeercert()["serialNumber"]

    yield ask
    stopped.set()
    keeper.join()
    listener.close()


def test_a_renewed_certificate_is_served_without_a_restart(serial):
    before = serial()
    certificates.current().certificate.unlink()  # as if it were due: the next look makes a new one
    until(lambda: serial() != before, within_s=10, what="another certificate")
