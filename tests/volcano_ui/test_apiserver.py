import asyncio
import ssl

import pytest

from cluster.access import certificates
from proof.harness.waiting import HANG_S
from volcano_ui.apiserver import keep_certificate


@pytest.fixture
async def serial(settings, tmp_path):
    """Return the serial number of the certificate that a server with a kept context shows."""
    settings.DATA = tmp_path
    found = certificates.current()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(found.certificate, found.key)
    keeper = asyncio.create_task(keep_certificate(context, every_s=0.02))
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    client = ssl.create_default_context(cafile=str(found.ca))

    async def ask():
        address = server.sockets[0].getsockname()
        _, writer = await asyncio.open_connection(*address, ssl=client, server_hostname="localhost")
        number = writer.get_extra_info("peercert")["serialNumber"]
        writer.close()
        return number

    yield ask
    keeper.cancel()
    server.close()


async def test_a_renewed_certificate_is_served_without_a_restart(serial):
    before = await serial()
    certificates.current().certificate.unlink()  # as if it were due: the next look makes a new one
    async with asyncio.timeout(HANG_S):
        while await serial() == before:
            pass
