from __future__ import annotations

import contextlib
import multiprocessing
import re
import sqlite3
import stat
from functools import partial
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from cluster.several.entries import Entry
from tests.tables import cases
from volcano_ui import env

HOME, DEV = Entry("home"), Entry("dev", "/no/such/file")
flag = partial(env.flag, default=False)
port = partial(env.number, default=8000, least=1, most=65535)
in_place = partial(env.webhooks, way="in-place")
beside = partial(env.webhooks, way="beside")
of_dev = partial(env.redis_url, cluster="dev")
one_of = partial(env.one_of_clusters, clusters=(HOME, DEV))
one_of_none = partial(env.one_of_clusters, clusters=())
# What is wrong with a variable, before and after the words of the table.
IS, HAS = "VOLCANO_UI_X is '{}'.*", "VOLCANO_UI_X has .*"


@cases("read, value, expected", {
    "words, by commas or spaces": (env.words, "a.org, b.org c.org", ["a.org", "b.org", "c.org"]),
    "directories, by commas alone": (env.directories, "/srv/my data, /scratch,", ["/srv/my data", "/scratch"]),
    "addresses and networks": (env.networks, "192.0.2.7, 10.0.0.0/8 ::1", ["192.0.2.7", "10.0.0.0/8", "::1"]),
    "a provider over TLS": (env.issuer, "https://login.org/realms/lab", "https://login.org/realms/lab"),
    "a provider of this machine": (env.issuer, "http://127.0.0.1:5556/dex", "http://127.0.0.1:5556/dex"),
    "no provider": (env.issuer, "", ""),
    "a prefix of names": (env.prefix, "oidc:", "oidc:"),
    "no prefix": (env.prefix, "", ""),
    "webhooks, where the API server finds them": (in_place, "192.0.2.7:9443", ("192.0.2.7", 9443)),
    "no webhooks": (beside, "", None),
    "a part": (partial(env.part, has_several=False), "web", "web"),
    "one cluster": (one_of_none, "", None),
    "the first cluster unless told": (one_of, "", HOME),
    "the cluster that is named": (one_of, "dev", DEV),
    "a Redis of each cluster": (of_dev, "redis://{cluster}.redis:6379/0", "redis://dev.redis:6379/0"),
    "one Redis of several clusters": (of_dev, "redis://redis:6379/0", "redis://redis:6379/0"),
})  # fmt: skip
def test_a_variable_is_read(monkeypatch, read, value, expected):
    monkeypatch.setenv("VOLCANO_UI_X", value)
    assert read("X") == expected


@cases("read, values, words", {
    "flag": (flag, ["yes", "2", "true"], f"{IS}; set it to 0 or 1."),
    "number": (port, ["-1", "x", "70000", "1.5"], "whole number from 1 to 65535"),
    "URL of Redis": (env.redis_url, ["foo://:hunter2@h/0", "localhost:6379", "nonsense"], "set it to redis://"),
    "directory that is not named from the root": (
        env.directories, ["data", "/srv,/srv/../etc", "~/data"], "name each directory from the root",
    ),
    "provider without TLS": (
        env.issuer, ["login.example.org", "http://login.example.org", "ftp://x", "https://"], "VOLCANO_UI_X is .*https://login",
    ),
    "prefix that would pass for others or not be sent": (
        env.prefix, ["system:", "system:serviceaccount:", " oidc:", "oidc: ", "a\tb", "ö"], "VOLCANO_UI_X is",
    ),
    "proxy that is no address": (
        env.networks, ["192.0.2.7, proxy.example", "10.0.0.1/8", "*", "127.0.0.1:80"], rf"{HAS} such as 192\.0\.2\.7",
    ),
    "webhooks without a port": (in_place, ["192.0.2.7"], f"{IS}Set it to where the API server reaches this process"),
    "webhooks where Volcano judges": (beside, ["192.0.2.7:9443"], f"{IS}WAY is not in-place"),
    "webhooks where no way is chosen": (partial(env.webhooks, way=""), ["192.0.2.7:9443"], f"{IS}WAY is not in-place"),
    "webhooks of several clusters": (
        partial(in_place, has_several=True), ["192.0.2.7:9443"], "VOLCANO_UI_CLUSTERS is set: webhooks are at one address",
    ),
    "part of several clusters": (partial(env.part, has_several=True), ["web"], "VOLCANO_UI_CLUSTERS is set"),
    "devices": (env.devices, ["licence=x"], "VOLCANO_UI_X is 'licence=x': 'licence=x' does not have the form"),
    "clusters": (env.clusters, ["home=embedded,dev"], "VOLCANO_UI_X is 'home=embedded,dev': 'dev' does not"),
    "another cluster": (one_of, ["prod"], f"{IS}; set it to home or dev, or leave it empty."),
    "a cluster of none": (one_of_none, ["prod"], f"{IS}, but VOLCANO_UI_CLUSTERS names none; leave it empty."),
})  # fmt: skip
def test_what_cannot_be_read_is_refused_with_the_remedy_and_without_its_password(monkeypatch, read, values, words):
    for value in values:
        monkeypatch.setenv("VOLCANO_UI_X", value)
        with pytest.raises(ImproperlyConfigured, match=words.replace("{}", re.escape(value))) as refusal:
            read("X")
        assert "hunter2" not in str(refusal.value)


@cases("url, expected", {
    "all parts, escaped password, an option": (
        "postgresql://ann:p%40ss@db.example:6432/batch?sslmode=require", ("ann", "p@ss", "db.example", 6432, "batch", {"sslmode": "require"}),
    ),
    "another time": ("postgres://db/batch?connect_timeout=3", ("", "", "db", "", "batch", {"connect_timeout": "3"})),
    "short scheme": ("postgres://db/batch", ("", "", "db", "", "batch", {})),
    "another name of sessions, which are told by ours": (
        "postgres://db/batch?application_name=mine", ("", "", "db", "", "batch", {}),
    ),
    "socket": ("postgresql:///postgres?host=/run/pg&user=ann", ("ann", "", "/run/pg", "", "postgres", {})),
})  # fmt: skip
def test_database_url(url, expected, monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", url)
    found = env.database(tmp_path / "db", instance="host-1")
    assert found["ENGINE"] == "django.db.backends.postgresql"
    *parts, options = expected
    assert [found[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME")] == parts
    assert found["OPTIONS"] == env.POSTGRESQL | options | {"application_name": "host-1"}


@cases("url, cluster, words", {
    "another server": ("mysql://u:hunter2@h/x", "", "set it to postgresql://"),
    "no database": ("postgresql://u:hunter2@h", "", "set it to postgresql://"),
    "no URL": ("nonsense", "", "set it to postgresql://"),
    "one for several clusters": ("postgresql://ann:hunter2@db/volcano", "dev", "DATABASE_URL is .* Write {cluster}"),
})  # fmt: skip
def test_wrong_database_url_is_refused_without_its_password(url, cluster, words, monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", url)
    with pytest.raises(ImproperlyConfigured, match=words) as refusal:
        env.database(tmp_path / "db", cluster)
    assert "hunter2" not in str(refusal.value)


def test_database_is_a_file_unless_it_is_named_and_one_for_each_cluster(monkeypatch, tmp_path):
    monkeypatch.delenv("DATABASE_URL", raising=False)
    assert env.database(tmp_path / "db")["NAME"] == tmp_path / "db"
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:hunter2@db/volcano_{cluster}")
    assert env.database(tmp_path / "db", "dev")["NAME"] == "volcano_dev"


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


@pytest.mark.parametrize("host", ["host", "h" * 54, "h" * 55, "h" * 64], ids=len)
def test_instance_is_no_longer_than_the_name_of_a_session(host, monkeypatch, tmp_path):
    names = set()
    for end in "ab":
        monkeypatch.setattr("socket.gethostname", lambda end=end: host[:-1] + end)
        names |= {env.instance(tmp_path / "one"), env.instance(tmp_path / "other")}
    assert len(names) == 4
    assert max(map(len, names)) <= env.LONGEST_SESSION


def test_secret_is_made_once_for_its_owner_alone(monkeypatch, tmp_path):
    monkeypatch.delenv("VOLCANO_UI_SECRET_KEY", raising=False)
    file = tmp_path / "data" / "secret-key"
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        (first,) = set(pool.starmap(env.secret, [("SECRET_KEY", file)] * 20))
    assert len(first) >= 50
    assert env.secret("SECRET_KEY", file) == first
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]
    assert len(env.secret("SECRET_KEY", file / "no place for it")) >= 50


def test_a_secret_is_read_from_its_file(monkeypatch, tmp_path):
    (tmp_path / "secret").write_text("s3cret\n")
    for value, content in (str(tmp_path / "secret"), "s3cret"), ("", ""):
        monkeypatch.setenv("VOLCANO_UI_X", value)
        assert env.content("X") == content
    monkeypatch.setenv("VOLCANO_UI_X", str(tmp_path / "none"))
    with pytest.raises(ImproperlyConfigured, match=r"VOLCANO_UI_X.*No such file.*this user may read"):
        env.content("X")


@cases("issuer, scopes, group, passwords, words", {
    "no way in": ("", ["openid"], "", False, "nobody could log in"),
    "no ID token": ("https://p", ["profile"], "", True, "begin it with openid"),
    "group of the system": ("https://p", ["openid"], "system:masters", True, "system's own"),
})  # fmt: skip
def test_logins_that_cannot_work_are_refused_at_the_start(issuer, scopes, group, passwords, words):
    with pytest.raises(ImproperlyConfigured, match=words):
        env.check_logins(issuer, scopes, group, passwords=passwords)


def test_devices_are_read(monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_DEVICES", "a.org/b:B=x,y")
    assert [(each.resource, len(each.devices)) for each in env.devices("DEVICES")] == [("a.org/b", 2)]


def test_several_clusters_and_one_are_not_both_said(monkeypatch):
    monkeypatch.setenv("VOLCANO_UI_CLUSTERS", "home=embedded,dev=/c")
    monkeypatch.setenv("VOLCANO_UI_KUBECONFIG", "")
    assert [each.name for each in env.clusters("CLUSTERS", "KUBECONFIG")] == ["home", "dev"]
    monkeypatch.setenv("VOLCANO_UI_KUBECONFIG", "/c")
    both = r"VOLCANO_UI_CLUSTERS and VOLCANO_UI_KUBECONFIG are both set; leave VOLCANO_UI_KUBECONFIG empty"
    with pytest.raises(ImproperlyConfigured, match=both):
        env.clusters("CLUSTERS", "KUBECONFIG")


def test_target_of_one_of_several_that_cannot_be_found_is_named():
    assert env.target_of(HOME) is None
    with pytest.raises(ImproperlyConfigured, match=r"VOLCANO_UI_CLUSTERS has 'dev=/no/such/file': .* cannot be"):
        env.target_of(DEV)


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
