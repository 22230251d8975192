from __future__ import annotations

import contextlib
import multiprocessing
import re
import sqlite3
import stat
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from cluster.several.entries import Entry
from tests.tables import cases
from volcano_ui import env


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param(
            "postgresql://ann:p%40ss@db.example:6432/batch?sslmode=require",
            ("ann", "p@ss", "db.example", 6432, "batch", {"sslmode": "require"}),
            id="all parts, escaped password, an option",
        ),
        pytest.param(
            "postgres://db/batch?connect_timeout=3",
            ("", "", "db", "", "batch", {"connect_timeout": "3"}),
            id="another time",
        ),
        pytest.param("postgres://db/batch", ("", "", "db", "", "batch", {}), id="short scheme"),
        pytest.param(
            "postgres://db/batch?application_name=mine",
            ("", "", "db", "", "batch", {}),
            id="another name of sessions, which are told by ours",
        ),
        pytest.param(
            "postgresql:///postgres?host=/run/pg&user=ann", ("ann", "", "/run/pg", "", "postgres", {}), id="socket"
        ),
    ],
)
def test_database_url(url, expected, monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", url)
    found = env.database(tmp_path / "db", instance="host-1")
    assert found["ENGINE"] == "django.db.backends.postgresql"
    *parts, options = expected
    assert [found[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME")] == parts
    assert found["OPTIONS"] == env.POSTGRESQL | options | {"application_name": "host-1"}


@pytest.mark.parametrize("host", ["host", "h" * 54, "h" * 55, "h" * 64], ids=len)
def test_instance_is_no_longer_than_the_name_of_a_session(host, monkeypatch, tmp_path):
    names = set()
    for end in "ab":
        monkeypatch.setattr("socket.gethostname", lambda end=end: host[:-1] + end)
        names |= {env.instance(tmp_path / "one"), env.instance(tmp_path / "other")}
    assert len(names) == 4
    assert max(map(len, names)) <= env.LONGEST_SESSION


@pytest.mark.parametrize("url", ["mysql://u:hunter2@h/x", "postgresql://u:hunter2@h", "nonsense"])
def test_wrong_database_url_is_refused_without_its_password(url, monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(ImproperlyConfigured, match="set it to postgresql://") as refusal:
        env.database(tmp_path / "db")
    assert "hunter2" not in str(refusal.value)


def test_database_is_a_file_by_default(monkeypatch, tmp_path):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert env.database(tmp_path / "db")["NAME"] == tmp_path / "db"


@pytest.mark.parametrize("value", ["yes", "2", "true"])
def test_flag_names_variable_value_and_remedy(value, monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_DEBUG", value)
    with pytest.raises(ImproperlyConfigured, match=f"VOLCANO_UI_DEBUG is '{value}'; set it to 0 or 1."):
        env.flag("DEBUG", default=False)


@pytest.mark.parametrize("value", ["-1", "x", "70000", "1.5"])
def test_number_outside_its_bounds_is_refused(value, monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_PORT", value)
    with pytest.raises(ImproperlyConfigured, match="whole number from 1 to 65535"):
        env.number("PORT", 8000, least=1, most=65535)


def test_words_are_separated_by_commas_or_spaces(monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_HOSTS", "a.example, b.example c.example")
    assert env.words("HOSTS") == ["a.example", "b.example", "c.example"]


def test_secret_is_made_once_for_its_owner_alone(monkeypatch, tmp_path):
    monkeypatch.delenv("VOLCANO_UI_SECRET_KEY", raising=False)
    file = tmp_path / "data" / "secret-key"
    first = env.secret("SECRET_KEY", file)
    assert len(first) >= 50
    assert env.secret("SECRET_KEY", file) == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_processes_that_start_together_agree_on_the_secret(monkeypatch, tmp_path):
    monkeypatch.delenv("VOLCANO_UI_SECRET_KEY", raising=False)
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        keys = pool.starmap(env.secret, [("SECRET_KEY", tmp_path / "secret-key")] * 20)
    assert len(set(keys)) == 1


def test_secret_without_a_place_for_it_is_still_secret(monkeypatch, tmp_path):
    monkeypatch.delenv("VOLCANO_UI_SECRET_KEY", raising=False)
    (tmp_path / "file").touch()
    assert len(env.secret("SECRET_KEY", tmp_path / "file" / "secret-key")) >= 50


@pytest.mark.parametrize("url", ["foo://:hunter2@h/0", "localhost:6379", "nonsense"])
def test_wrong_redis_url_is_refused_without_its_password(url, monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_REDIS_URL", url)
    with pytest.raises(ImproperlyConfigured, match="set it to redis://") as refusal:
        env.redis_url("REDIS_URL")
    assert "hunter2" not in str(refusal.value)


def test_directories_are_separated_by_commas_and_may_hold_spaces(monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_HOST_PATHS", "/srv/my data, /scratch,")
    assert env.directories("HOST_PATHS") == ["/srv/my data", "/scratch"]


@pytest.mark.parametrize("value", ["data", "/srv/../etc", "~/data"])
def test_directory_that_is_not_named_from_the_root_is_refused(monkeypatch, value):
    monkeypatch.setenv("VOLCANO_UI_HOST_PATHS", f"/srv,{value}")
    with pytest.raises(ImproperlyConfigured, match="name each directory from the root"):
        env.directories("HOST_PATHS")


@pytest.mark.parametrize("url", ["login.example.org", "http://login.example.org", "ftp://x", "https://"])
def test_a_provider_without_tls_is_refused(monkeypatch, url):
    monkeypatch.setenv("VOLCANO_UI_OIDC_ISSUER", url)
    with pytest.raises(ImproperlyConfigured, match=r"VOLCANO_UI_OIDC_ISSUER is .*https://login"):
        env.issuer("OIDC_ISSUER")


@pytest.mark.parametrize("url", ["https://login.example.org/realms/lab", "http://127.0.0.1:5556/dex", ""])
def test_a_provider_over_tls_or_of_this_machine_is_taken(monkeypatch, url):
    monkeypatch.setenv("VOLCANO_UI_OIDC_ISSUER", url)
    assert env.issuer("OIDC_ISSUER") == url


@pytest.mark.parametrize("value", ["system:", "system:serviceaccount:", " oidc:", "oidc: ", "a\tb", "ö"])
def test_prefix_of_names_is_refused_that_would_pass_for_others_or_not_be_sent(monkeypatch, value):
    monkeypatch.setenv("VOLCANO_UI_X", value)
    with pytest.raises(ImproperlyConfigured, match="VOLCANO_UI_X is"):
        env.prefix("X")


def test_prefix_of_names_is_taken_as_it_is(monkeypatch):
    assert env.prefix("X") == ""
    monkeypatch.setenv("VOLCANO_UI_X", "oidc:")
    assert env.prefix("X") == "oidc:"


def test_a_secret_is_read_from_its_file(monkeypatch, tmp_path):
    (tmp_path / "secret").write_text("s3cret\n")
    monkeypatch.setenv("VOLCANO_UI_OIDC_CLIENT_SECRET_FILE", str(tmp_path / "secret"))
    assert env.content("OIDC_CLIENT_SECRET_FILE") == "s3cret"
    monkeypatch.setenv("VOLCANO_UI_OIDC_CLIENT_SECRET_FILE", str(tmp_path / "none"))
    with pytest.raises(ImproperlyConfigured, match=r"CLIENT_SECRET_FILE.*No such file.*this user may read"):
        env.content("OIDC_CLIENT_SECRET_FILE")
    monkeypatch.delenv("VOLCANO_UI_OIDC_CLIENT_SECRET_FILE")
    assert env.content("OIDC_CLIENT_SECRET_FILE") == ""


@cases("issuer, scopes, group, passwords, words", {
    "no way in": ("", ["openid"], "", False, "nobody could log in"),
    "no ID token": ("https://p", ["profile"], "", True, "begin it with openid"),
    "group of the system": ("https://p", ["openid"], "system:masters", True, "system's own"),
})  # fmt: skip
def test_logins_that_cannot_work_are_refused_at_the_start(issuer, scopes, group, passwords, words):
    with pytest.raises(ImproperlyConfigured, match=words):
        env.check_logins(issuer, scopes, group, passwords=passwords)


def test_webhooks_are_where_the_api_server_finds_them(monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_WEBHOOKS", "192.0.2.7:9443")
    assert env.webhooks("WEBHOOKS", "in-place") == ("192.0.2.7", 9443)
    monkeypatch.delenv("VOLCANO_UI_WEBHOOKS")
    assert env.webhooks("WEBHOOKS", "beside") is None


@cases("value, way, told", {
    "no port": ("192.0.2.7", "in-place", "Set it to where the API server reaches this process"),
    "Volcano judges": ("192.0.2.7:9443", "beside", "WAY is not in-place"),
    "no way is chosen": ("192.0.2.7:9443", "", "WAY is not in-place"),
})  # fmt: skip
def test_webhooks_of_no_use_are_refused(value, way, told, monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_WEBHOOKS", value)
    with pytest.raises(ImproperlyConfigured, match=f"VOLCANO_UI_WEBHOOKS is '{value}'.*{told}"):
        env.webhooks("WEBHOOKS", way)


def test_webhooks_of_several_clusters_are_refused(monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_WEBHOOKS", "192.0.2.7:9443")
    with pytest.raises(ImproperlyConfigured, match="VOLCANO_UI_CLUSTERS is set: webhooks are at one address"):
        env.webhooks("WEBHOOKS", "in-place", has_several=True)


def test_parts_of_several_clusters_are_refused(monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_ONLY", "web")
    assert env.part("ONLY", has_several=False) == "web"
    with pytest.raises(ImproperlyConfigured, match="VOLCANO_UI_CLUSTERS is set"):
        env.part("ONLY", has_several=True)


def test_devices_that_cannot_be_read_are_named(monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_DEVICES", "a.org/b:B=x,y")
    assert [(each.resource, len(each.devices)) for each in env.devices("DEVICES")] == [("a.org/b", 2)]
    monkeypatch.setenv("VOLCANO_UI_DEVICES", "licence=x")
    with pytest.raises(
        ImproperlyConfigured, match="VOLCANO_UI_DEVICES is 'licence=x': 'licence=x' does not have the form"
    ):
        env.devices("DEVICES")


def test_several_clusters_and_one_are_not_both_said(monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_CLUSTERS", "home=embedded,dev=/c")
    monkeypatch.setenv("VOLCANO_UI_KUBECONFIG", "")
    assert [each.name for each in env.clusters("CLUSTERS", "KUBECONFIG")] == ["home", "dev"]
    monkeypatch.setenv("VOLCANO_UI_KUBECONFIG", "/c")
    both = r"VOLCANO_UI_CLUSTERS and VOLCANO_UI_KUBECONFIG are both set; leave VOLCANO_UI_KUBECONFIG empty"
    with pytest.raises(ImproperlyConfigured, match=both):
        env.clusters("CLUSTERS", "KUBECONFIG")


def test_clusters_that_cannot_be_read_are_named(monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_CLUSTERS", "home=embedded,dev")
    with pytest.raises(ImproperlyConfigured, match=r"VOLCANO_UI_CLUSTERS is 'home=embedded,dev': 'dev' does not"):
        env.clusters("CLUSTERS")


HOME, DEV = Entry("home"), Entry("dev", "/no/such/file")


@cases("value, clusters, expected", {
    "one cluster": ("", (), None),
    "the first unless told": ("", (HOME, DEV), HOME),
    "the one that is named": ("dev", (HOME, DEV), DEV),
})  # fmt: skip
def test_which_of_several_clusters(monkeypatch, value, clusters, expected):
    monkeypatch.setenv("VOLCANO_UI_CLUSTER", value)
    assert env.one_of_clusters("CLUSTER", clusters) == expected


@cases("clusters, words", {
    "another one": ((HOME, DEV), "is 'prod'; set it to home or dev, or leave it empty."),
    "none": ((), "is 'prod', but VOLCANO_UI_CLUSTERS names none; leave it empty."),
})  # fmt: skip
def test_cluster_that_is_none_of_several_is_refused(monkeypatch, clusters, words):
    monkeypatch.setenv("VOLCANO_UI_CLUSTER", "prod")
    with pytest.raises(ImproperlyConfigured, match=f"VOLCANO_UI_CLUSTER {words}"):
        env.one_of_clusters("CLUSTER", clusters)


def test_target_of_one_of_several_that_cannot_be_found_is_named():
    assert env.target_of(HOME) is None
    with pytest.raises(ImproperlyConfigured, match=r"VOLCANO_UI_CLUSTERS has 'dev=/no/such/file': .* cannot be"):
        env.target_of(DEV)


def test_each_of_several_clusters_has_a_server_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:hunter2@db/volcano_{cluster}")
    assert env.database(tmp_path / "db", "dev")["NAME"] == "volcano_dev"
    monkeypatch.setenv("VOLCANO_UI_REDIS_URL", "redis://{cluster}.redis:6379/0")
    assert env.redis_url("REDIS_URL", "dev") == "redis://dev.redis:6379/0"


def test_several_clusters_may_have_one_redis(monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_REDIS_URL", "redis://redis:6379/0")
    assert env.redis_url("REDIS_URL", "dev") == "redis://redis:6379/0"


def prefix(monkeypatch, tmp_path, url="", key="a key", file="db.sqlite3"):
    monkeypatch.setenv("DATABASE_URL", url)
    return env.redis_prefix(key, env.database(tmp_path / file, instance="host-0123"))


@cases("one, other", {
    "files": ({}, {"file": "clusters/dev/db.sqlite3"}),
    "one file name on two machines": ({}, {"key": "another key"}),
    "databases": ({"url": "postgresql://db/a"}, {"url": "postgresql://db/b"}),
    "hosts": ({"url": "postgresql://db/a"}, {"url": "postgresql://other/a"}),
    "schemas": ({"url": "postgresql://db/a"}, {"url": "postgresql://db/a?options=-csearch_path%3Dlab"}),
})  # fmt: skip
def test_names_in_redis_tell_installations_apart(one, other, monkeypatch, tmp_path):
    assert prefix(monkeypatch, tmp_path, **one) != prefix(monkeypatch, tmp_path, **other)


def test_names_in_redis_outlive_another_password_and_tell_nothing(monkeypatch, tmp_path):
    before = prefix(monkeypatch, tmp_path, url="postgresql://ann:hunter2@db/a")
    assert before == prefix(monkeypatch, tmp_path, url="postgresql://bob:hunter3@db/a?sslmode=require")
    assert re.fullmatch(r"volcano-ui:[0-9a-f]{16}:", before)


def test_one_server_for_several_clusters_is_refused_without_its_password(monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:hunter2@db/volcano")
    with pytest.raises(ImproperlyConfigured, match=r"DATABASE_URL is .* Write {cluster}") as refusal:
        env.database(tmp_path / "db", "dev")
    assert "hunter2" not in str(refusal.value)


@pytest.mark.parametrize("value", ["proxy.example", "10.0.0.1/8", "*", "127.0.0.1:80"])
def test_a_proxy_that_is_no_address_is_refused(value, monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_TRUSTED_PROXIES", f"192.0.2.7, {value}")
    with pytest.raises(ImproperlyConfigured, match=r"VOLCANO_UI_TRUSTED_PROXIES has .* such as 192\.0\.2\.7"):
        env.networks("TRUSTED_PROXIES")


def test_proxies_are_addresses_and_networks(monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_TRUSTED_PROXIES", "192.0.2.7, 10.0.0.0/8 ::1")
    assert env.networks("TRUSTED_PROXIES") == ["192.0.2.7", "10.0.0.0/8", "::1"]


@pytest.mark.parametrize(("value", "level"), [("normal", 1), ("full", 2)])
def test_each_commit_waits_for_the_disk_where_that_is_asked_for(value, level, monkeypatch, tmp_path):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with contextlib.closing(sqlite3.connect(tmp_path / "db")) as opened:
        opened.executescript(env.database(tmp_path / "db", synchronous=value)["OPTIONS"]["init_command"])
        assert opened.execute("PRAGMA synchronous").fetchone() == (level,)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:hunter2@db.example.org:5433/batch", "postgresql://db.example.org:5433/batch"),
        ("postgresql://db/batch?password=hunter2&user=u", "postgresql://db/batch"),
        ("postgresql:///batch?host=/run/postgresql&port=5433", "postgresql:///batch?host=/run/postgresql&port=5433"),
        ("postgresql://u:hunter2@[::1]/batch", "postgresql://[::1]/batch"),
        ("postgresql:///batch", "postgresql:///batch"),
        ("", "/data/db.sqlite3"),
    ],
)
def test_a_database_is_shown_by_host_and_name_and_never_by_password(monkeypatch, url, shown):
    monkeypatch.setenv("DATABASE_URL", url)
    assert env.shown_database(env.database(Path("/data/db.sqlite3"))) == shown
