"""The addresses at which this installation is found, and its certificates."""

import fcntl
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from cryptography import x509
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command

from cluster.access import certificates, kubeconfig, site
from cluster.store import Create, store
from kube.resources import NAMESPACES
from tests.blocks import blocks
from tests.cluster.objects import of_values
from tests.tables import cases

LAB = "lab.example.org"


def addresses(hosts, listen, https, proxied):
    pages = site.pages_address(hosts, listen, 9000, https=https, proxied=proxied)
    return [pages, site.api_address(hosts, listen, 9443)]


@blocks("addresses", folder="cluster")
def test_addresses_follow_from_names_and_ports(block, golden):
    golden(block, of_values(addresses))


@pytest.fixture
def place(settings, tmp_path):
    """The state directory of an `up` that ran on other ports than the settings now say."""
    settings.DATA, settings.TARGET = tmp_path, None
    (tmp_path / "run").mkdir()
    return tmp_path


@pytest.fixture
def ran(place, settings):
    settings.PORT, settings.API_PORT, settings.HOSTS = 9001, 9444, [LAB]
    site.write()
    settings.PORT, settings.API_PORT, settings.HOSTS = 8000, 8443, []
    return site.current().site


def test_what_runs_counts_before_the_settings_of_a_command_and_then_what_ran_last(place, ran):
    assert (ran.pages, ran.api) == (f"http://{LAB}", f"https://{LAB}:9444")
    with (place / site.LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert site.current() == (ran, "")
    found = site.current()
    assert found.site == ran
    assert f"No “make up” runs on the state directory {place}" in found.message
    assert "that it had last" in found.message
    before = (place / "pki" / "server.crt").read_bytes()
    assert "BEGIN CERTIFICATE" in site.authority(found.site)
    assert (place / "pki" / "server.crt").read_bytes() == before, "a command makes no other certificate"


@pytest.mark.parametrize("left", [None, "", "[]", '{"pages": ""}', '{"port": 1}'])
def test_without_any_before_the_settings_count(place, left):
    if left is not None:
        (place / site.FILE).write_text(left)
    found = site.current()
    assert (found.site.pages, "addresses of the settings" in found.message) == ("http://127.0.0.1:8000", True)


@pytest.mark.django_db
def test_commands_use_what_is_written_until_the_directory_is_moved(ran, settings, tmp_path_factory, capsys):
    call_command("loginlink")
    output = capsys.readouterr()
    assert output.out.startswith(f"http://{LAB}/login/")
    assert "No “make up” runs" in output.err
    call_command("kubeconfig")
    assert yaml.safe_load(capsys.readouterr().out)["clusters"][0]["cluster"]["server"] == f"https://{LAB}:9444"
    call_command("jointoken")
    assert f"--server https://{LAB}:9444 " in capsys.readouterr().out
    moved = tmp_path_factory.mktemp("moved") / "data"
    settings.DATA = settings.DATA.rename(moved)
    found = site.current()
    assert "addresses of the settings" in found.message
    assert site.authority(found.site) == (moved / "pki" / "ca.crt").read_text()


@pytest.mark.django_db
@pytest.mark.parametrize("host", [LAB, "127.0.0.1", "localhost", "[::1]"])
def test_installations_have_names_of_their_own_in_kubeconfigs(monkeypatch, host):
    monkeypatch.setattr("socket.gethostname", lambda: "machine")
    (made,) = store.write(Create(NAMESPACES, {"metadata": {"name": "kube-system"}}))
    called = kubeconfig.name(f"https://{host}:8443")
    assert called == f"volcano-ui-{LAB if host == LAB else 'machine'}-{made.uid[:8]}"
    config = yaml.safe_load(kubeconfig.text(f"https://{host}:8443", "", "a b", "secret", called=called))
    assert {each["name"] for kind in ("clusters", "contexts") for each in config[kind]} == {called}
    assert config["users"][0]["name"] == f"a-b@{called}"


NAMES = ["localhost", "127.0.0.1", "::1", "kubernetes.default.svc", "*.example.org"]
NOW = datetime(2027, 1, 1, tzinfo=UTC)


def read(path):
    return x509.load_pem_x509_certificate(path.read_bytes())


def names_of(found):
    held = read(found.certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(name.value) for name in held}


def test_the_files_are_made_once_and_the_keys_are_their_owners_alone_whatever_the_umask(tmp_path):
    directory = tmp_path / "pki"
    old = os.umask(0)
    try:
        found = certificates.ensure(directory, NAMES, now=NOW)
    finally:
        os.umask(old)
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
    certificates.ensure(tmp_path, ["localhost", "*", "", "bücher.example", "\udc80"], now=NOW)
    assert names_of(found) == {"localhost", "xn--bcher-kva.example"}, "names that no certificate can hold are left out"


@pytest.mark.parametrize("name", ["server.crt", "server.key", "ca.key", "ca.crt"])
@pytest.mark.parametrize("content", [None, b"", b"not PEM"], ids=["missing", "empty", "broken"])
def test_a_file_that_is_lost_or_broken_is_made_anew(tmp_path, name, content):
    found = certificates.ensure(tmp_path, NAMES, now=NOW)
    (tmp_path / name).unlink() if content is None else (tmp_path / name).write_bytes(content)
    certificates.ensure(tmp_path, NAMES, now=NOW)
    read(found.certificate).verify_directly_issued_by(read(found.ca))


def test_processes_that_start_together_agree_on_one_authority(tmp_path):
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: certificates.ensure(tmp_path, NAMES).ca.read_bytes(), range(6)))
    assert len(set(found)) == 1


MACHINE = socket.gethostname()


@cases("listen, hosts, expected, absent", {
    "this machine only": ("127.0.0.1", [], set(), {MACHINE}),
    "an address": ("10.1.2.3", ["a.example", "[fd00::1]"], {"10.1.2.3", "a.example", "fd00::1"}, set()),
    "all addresses": ("0.0.0.0", [".example.org"], {"*.example.org", "example.org", MACHINE}, {"0.0.0.0"}),
})  # fmt: skip
def test_the_names_are_those_of_the_settings(settings, listen, hosts, expected, absent):
    settings.LISTEN, settings.HOSTS = listen, hosts
    names = set(certificates.server_names())
    assert names >= {*certificates.ALWAYS, *expected}
    assert not names & absent


def test_an_administrators_own_files_are_used_as_they_are_and_half_of_them_is_refused(settings, tmp_path):
    files = certificates.ensure(tmp_path, NAMES)
    for settings.API_CERTIFICATE, settings.API_CERTIFICATE_CA in ((None, files.ca), (tmp_path / "none", None)):
        with pytest.raises(ImproperlyConfigured, match="belong together; set both"):
            certificates.current()
    settings.API_CERTIFICATE_KEY = files.key
    with pytest.raises(ImproperlyConfigured, match=r"VOLCANO_UI_API_CERTIFICATE.*cannot be read"):
        certificates.current()
    settings.API_CERTIFICATE = files.certificate
    found = certificates.current()
    assert (found.certificate, found.key, found.ca_text()) == (files.certificate, files.key, "")
    settings.API_CERTIFICATE_CA = files.ca
    assert certificates.current().ca_text().startswith("-----BEGIN CERTIFICATE-----")
