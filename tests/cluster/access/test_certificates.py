from __future__ import annotations

import os
import socket
import ssl
import threading
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from django.core.exceptions import ImproperlyConfigured

from cluster.access import certificates
from tests.tables import cases

NAMES = ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc", "*.example.org"]
NOW = datetime(2027, 1, 1, tzinfo=UTC)


def names_of(found):
    certificate = x509.load_pem_x509_certificate(found.certificate.read_bytes())
    held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in held}


def test_the_files_are_made_once_and_the_keys_are_their_owners_alone(tmp_path):
    directory = tmp_path / "pki"
    found = certificates.ensure(directory, NAMES, now=NOW)
    before = {file.name: file.read_bytes() for file in directory.iterdir()}
    assert certificates.ensure(directory, NAMES, now=NOW + timedelta(days=300)) == found
    assert {file.name: file.read_bytes() for file in directory.iterdir()} == before
    assert directory.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in directory.glob("*.key")} == {0o600}
    assert names_of(found) == set(NAMES)


@cases("later, names", {
    "fewer than thirty days are left": (timedelta(days=336), NAMES),
    "a name was added": (timedelta(), [*NAMES, "new.example.org"]),
    "a name is gone": (timedelta(), NAMES[:2]),
})  # fmt: skip
def test_the_servers_certificate_is_made_anew_and_the_authority_stays(tmp_path, later, names):
    found = certificates.ensure(tmp_path, NAMES, now=NOW)
    authority, server = found.ca.read_bytes(), found.certificate.read_bytes()
    certificates.ensure(tmp_path, names, now=NOW + later)
    assert found.ca.read_bytes() == authority
    assert found.certificate.read_bytes() != server
    assert names_of(found) == set(names)


@pytest.mark.parametrize("name", ["server.crt", "server.key", "ca.key", "ca.crt"])
@cases("content", {
    "missing": None,
    "empty": b"",
    "broken": b"not PEM",
})  # fmt: skip
def test_a_file_that_is_lost_or_broken_is_made_anew(tmp_path, name, content):
    found = certificates.ensure(tmp_path, NAMES, now=NOW)
    (tmp_path / name).unlink() if content is None else (tmp_path / name).write_bytes(content)
    certificates.ensure(tmp_path, NAMES, now=NOW)
    authority = x509.load_pem_x509_certificate(found.ca.read_bytes())
    x509.load_pem_x509_certificate(found.certificate.read_bytes()).verify_directly_issued_by(authority)


def test_names_that_no_certificate_can_hold_are_left_out(tmp_path):
    found = certificates.ensure(tmp_path, ["localhost", "*", "", "bücher.example", "\udc80"], now=NOW)
    assert names_of(found) == {"localhost", "xn--bcher-kva.example"}


def test_processes_that_start_together_agree_on_one_authority(tmp_path):
    seen = []
    starts = [
        threading.Thread(target=lambda: seen.append(certificates.ensure(tmp_path, NAMES).ca.read_bytes()))
        for _ in range(6)
    ]
    for each in starts:
        each.start()
    for each in starts:
        each.join()
    assert len(set(seen)) == 1


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "kubernetes.default.svc"])
def test_a_client_that_knows_the_authority_trusts_the_server_by_each_name(tmp_path, host):
    found = certificates.ensure(tmp_path, NAMES)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(found.certificate, found.key)
    client = ssl.create_default_context(cadata=found.ca_text())
    ours, theirs = socket.socketpair()
    answer = threading.Thread(target=lambda: server.wrap_socket(theirs, server_side=True).close())
    answer.start()
    with client.wrap_socket(ours, server_hostname=host) as connection:
        assert connection.version() == "TLSv1.3"
    answer.join()


@cases("listen, hosts, expected, absent", {
    "this machine only": ("127.0.0.1", [], set(), {socket.gethostname()}),
    "an address": ("10.1.2.3", ["a.example", "[fd00::1]"], {"10.1.2.3", "a.example", "fd00::1"}, set()),
    "all addresses": ("0.0.0.0", [".example.org"], {"*.example.org", "example.org", socket.gethostname()}, {"0.0.0.0"}),
})  # fmt: skip
def test_the_names_are_those_of_the_settings(settings, listen, hosts, expected, absent):
    settings.LISTEN, settings.HOSTS = listen, hosts
    names = set(certificates.server_names())
    assert names >= {*certificates.ALWAYS, *expected}
    assert not names & absent


def test_an_administrators_own_files_are_used_as_they_are(settings, tmp_path):
    files = certificates.ensure(tmp_path, NAMES)
    settings.API_CERTIFICATE, settings.API_CERTIFICATE_KEY = files.certificate, files.key
    found = certificates.current()
    assert (found.certificate, found.key, found.ca_text()) == (files.certificate, files.key, "")
    settings.API_CERTIFICATE_CA = files.ca
    assert certificates.current().ca_text().startswith("-----BEGIN CERTIFICATE-----")


def test_half_of_ones_own_files_is_refused_with_the_remedy(settings, tmp_path):
    settings.API_CERTIFICATE = tmp_path / "a"
    with pytest.raises(ImproperlyConfigured, match="belong together; set both"):
        certificates.current()
    settings.API_CERTIFICATE_KEY = tmp_path / "b"
    with pytest.raises(ImproperlyConfigured, match=r"VOLCANO_UI_API_CERTIFICATE.*cannot be read"):
        certificates.current()


def test_the_umask_does_not_open_the_keys(tmp_path):
    old = os.umask(0)
    try:
        certificates.ensure(tmp_path / "pki", NAMES)
    finally:
        os.umask(old)
    assert {file.stat().st_mode & 0o077 for file in (tmp_path / "pki").glob("*.key")} == {0}
