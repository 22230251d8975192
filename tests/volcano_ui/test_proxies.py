"""Who is believed to ask, and by which scheme: the login limit and audit rows go by it, forms and the socket of a page over TLS."""

import contextlib
import re
import socket

import httpx
import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from cluster.access import logins
from cluster.models import AuditEntry
from cluster.runtime import nudge
from dashboard import cluster_usage
from proof.harness.serving import in_thread
from proof.harness.waiting import HANG_S
from tests.tables import cases
from volcano_ui import web

GUESSES = logins.MAX_FOR_NAME + 3


NAME = "volcano.example"
SNIPPET = re.findall(
    r"^ +proxy_set_header (\S+) (\S+);", (django_settings.BASE_DIR / "deploy/README.md").read_text(), re.MULTILINE
)
UPGRADE = ("Upgrade", "Connection")  # which a client of the socket says itself, and of a request are empty


def forwarded(scheme, port):
    """Return what nginx sends of a request to the name, by the snippet of deploy/README.md."""
    host = NAME if port == {"https": 443, "http": 80}[scheme] else f"{NAME}:{port}"
    variables = {"$http_host": host, "$scheme": scheme, "$proxy_add_x_forwarded_for": "198.51.100.7"}
    return f"{scheme}://{host}", {name: variables[value] for name, value in SNIPPET if name not in UPGRADE}


@pytest.fixture
def proxied(transactional_db, redis_url, settings):
    """Serve the application that the product serves, where these proxies are trusted; return the port."""
    with contextlib.ExitStack() as running:

        def start(proxies):
            settings.TRUSTED_PROXIES = proxies
            settings.ALLOWED_HOSTS = [NAME]
            settings.REDIS_URL = redis_url
            listener = web.listen("127.0.0.1", 0)
            running.enter_context(in_thread(web.config(), listener))
            return listener.getsockname()[1]

        nudge.client.cache_clear()
        yield start
    cluster_usage.forget()
    nudge.client.cache_clear()


def log_in(client, password, **headers):
    """Log alice in by the form of the page; return the status."""
    client.get("/login/")
    token = next(value for name, value in client.cookies.items() if "csrf" in name)
    form = {"username": "alice", "password": password, "csrfmiddlewaretoken": token}
    return client.post("/login/", data=form, headers=headers).status_code


@cases("proxies, let_try", {
    "nobody is trusted": ([], logins.MAX_FOR_NAME),
    "somebody else is trusted": (["192.0.2.0/24"], logins.MAX_FOR_NAME),
    "the proxy is trusted": (["127.0.0.0/8"], GUESSES),
})  # fmt: skip
def test_a_forged_address_evades_no_limit(proxied, proxies, let_try):
    User.objects.create(username="alice")
    with httpx.Client(
        base_url=f"http://127.0.0.1:{proxied(proxies)}", headers={"Host": NAME}, timeout=HANG_S
    ) as client:
        forged = [{"x-forwarded-for": f"198.51.100.{number}"} for number in range(GUESSES)]
        codes = [log_in(client, "wrong", **each) for each in forged]
    assert codes.count(429) == GUESSES - let_try
    messages = [row.message for row in AuditEntry.objects.filter(verb="login")]
    assert len(messages) == let_try
    assert all("198.51.100" in message for message in messages) is (let_try == GUESSES)


def socket_status(client, port, origin, headers):
    """Return what a page of the origin is answered that opens the live socket: 101, or why not."""
    request_headers = {**headers, "Cookie": "; ".join(f"{name}={value}" for name, value in client.cookies.items())}
    # The handshake names the host of the address; the connection is to where the server is.
    address, server = f"ws://{request_headers.pop('Host')}/live/", ("127.0.0.1", port)
    try:
        with connect(
            address, sock=socket.create_connection(server, HANG_S), origin=origin, additional_headers=request_headers
        ):
            return 101
    except InvalidStatus as refusal:
        return refusal.response.status_code


@cases("proxies, scheme, port, is_ours", {
    "TLS at the proxy": (["127.0.0.1"], "https", 443, True),
    "TLS at another port": (["127.0.0.1"], "https", 8443, True),
    "without TLS": (["127.0.0.1"], "http", 8080, True),
    "a scheme that somebody says who is not trusted": (["192.0.2.1"], "https", 8443, False),
})  # fmt: skip
def test_pages_forms_and_the_socket_work_with_the_headers_of_the_documented_snippet(
    proxied, proxies, scheme, port, is_ours
):
    User.objects.create_superuser("alice", password="right")
    origin, headers = forwarded(scheme, port)
    at = proxied(proxies)
    with httpx.Client(base_url=f"http://127.0.0.1:{at}", headers=headers, timeout=HANG_S) as client:
        assert log_in(client, "right", Origin=origin) == (302 if is_ours else 403)
        if not is_ours:
            assert log_in(client, "right", Origin=origin.replace("https", "http")) == 302
        page = client.get("/queues/").text
        assert (f'data-origin="{origin}"' in page) is is_ours
        assert socket_status(client, at, origin, headers) == (101 if is_ours else 403)
        assert socket_status(client, at, f"{scheme}://{NAME}:9", headers) == 403
    messages = [row.message for row in AuditEntry.objects.filter(verb="login")]
    assert [("198.51.100.7" in message) is is_ours for message in messages] == [True]
