from __future__ import annotations

import fcntl

import pytest
import yaml
from django.core.management import call_command

from cluster.access import kubeconfig, site
from cluster.store import Create, store
from kube.resources import NAMESPACES
from tests.tables import cases

LAB = "lab.example.org"


@cases("hosts, listen, https, proxied, pages, api", {
    "this machine": ([], "127.0.0.1", False, False, "http://127.0.0.1:9000", "https://127.0.0.1:9443"),
    "all addresses": ([], "0.0.0.0", False, False, "http://127.0.0.1:9000", "https://127.0.0.1:9443"),
    "all of both protocols": ([], "::", False, False, "http://[::1]:9000", "https://[::1]:9443"),
    "TLS for nobody's name": ([], "127.0.0.1", True, False, "http://127.0.0.1:9000", "https://127.0.0.1:9443"),
    "TLS in front": ([LAB, "b"], "127.0.0.1", True, True, f"https://{LAB}", f"https://{LAB}:9443"),
    "TLS elsewhere": ([LAB], "0.0.0.0", True, False, f"https://{LAB}", f"https://{LAB}:9443"),
    "a proxy, since nobody else can come": ([LAB], "127.0.0.1", False, False, f"http://{LAB}", f"https://{LAB}:9443"),
    "a proxy that is named": ([LAB], "0.0.0.0", False, True, f"http://{LAB}", f"https://{LAB}:9443"),
    "none in front": ([LAB], "0.0.0.0", False, False, f"http://{LAB}:9000", f"https://{LAB}:9443"),
    "patterns are no names": (["*", ".org", LAB], "0.0.0.0", True, False, f"https://{LAB}", f"https://{LAB}:9443"),
    "patterns alone": (["*"], "0.0.0.0", True, False, "http://127.0.0.1:9000", "https://127.0.0.1:9443"),
    "an address as a name": (["2001:db8::1"], "::", False, False, "http://[2001:db8::1]:9000",
        "https://[2001:db8::1]:9443"),
})  # fmt: skip
def test_addresses_follow_from_names_and_ports(hosts, listen, https, proxied, pages, api):
    assert site.pages_address(hosts, listen, 9000, https=https, proxied=proxied) == pages
    assert site.api_address(hosts, listen, 9443) == api


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


def test_what_runs_counts_before_the_settings_of_a_command(place, ran):
    with (place / site.LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert site.current() == (ran, "")
    assert (ran.pages, ran.api) == (f"http://{LAB}", f"https://{LAB}:9444")


def test_without_a_running_system_the_last_addresses_are_used_and_said(place, ran):
    found = site.current()
    assert found.site == ran
    assert f"No “make up” runs on the state directory {place}" in found.said
    assert "that it had last" in found.said


@pytest.mark.parametrize("left", [None, "", "[]", '{"pages": ""}', '{"port": 1}'])
def test_without_any_before_the_settings_count(place, left):
    if left is not None:
        (place / site.FILE).write_text(left)
    found = site.current()
    assert found.site.pages == "http://127.0.0.1:8000"
    assert "addresses of the settings" in found.said


def test_a_directory_that_was_moved_has_no_addresses_yet(ran, settings, tmp_path_factory):
    moved = tmp_path_factory.mktemp("moved") / "data"
    settings.DATA = settings.DATA.rename(moved)
    found = site.current()
    assert "addresses of the settings" in found.said
    assert site.authority(found.site) == (moved / "pki" / "ca.crt").read_text()


def test_commands_make_no_other_certificate_than_the_running_system(place, ran):
    before = (place / "pki" / "server.crt").read_bytes()
    assert "BEGIN CERTIFICATE" in site.authority(site.current().site)
    assert (place / "pki" / "server.crt").read_bytes() == before


@pytest.mark.django_db
def test_commands_use_what_is_written(ran, capsys):
    call_command("loginlink")
    told = capsys.readouterr()
    assert told.out.startswith(f"http://{LAB}/login/")
    assert "No “make up” runs" in told.err
    call_command("kubeconfig")
    assert yaml.safe_load(capsys.readouterr().out)["clusters"][0]["cluster"]["server"] == f"https://{LAB}:9444"
    call_command("jointoken")
    assert f"--server https://{LAB}:9444 " in capsys.readouterr().out


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("server", "host"),
    [
        (f"https://{LAB}:8443", LAB),
        ("https://127.0.0.1:8443", "machine"),
        ("https://localhost:8443", "machine"),
        ("https://[::1]:8443", "machine"),
    ],
)
def test_installations_have_names_of_their_own_in_kubeconfigs(monkeypatch, server, host):
    monkeypatch.setattr("socket.gethostname", lambda: "machine")
    (made,) = store.write(Create(NAMESPACES, {"metadata": {"name": "kube-system"}}))
    called = kubeconfig.name(server)
    assert called == f"volcano-ui-{host}-{made.uid[:8]}"
    config = yaml.safe_load(kubeconfig.text(server, "", "a b", "secret", called=called))
    assert {each["name"] for kind in ("clusters", "contexts") for each in config[kind]} == {called}
    assert config["users"][0]["name"] == f"a-b@{called}"
