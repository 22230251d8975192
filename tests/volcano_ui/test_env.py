import contextlib
import multiprocessing
import re
import runpy
import sqlite3
import stat
from functools import partial
from pathlib import Path

import pytest
import yaml
from django.core.exceptions import ImproperlyConfigured

from cluster.several.entries import Entry
from tests.tables import cases, parts
from volcano_ui import env, settings

HOME, DEV = Entry("home"), Entry("dev", "/no/such/file")
READ = {
    **{name: getattr(env, name) for name in ("words", "directories", "networks", "issuer", "prefix", "clusters")},
    "flag": partial(env.flag, default=False),
    "port": partial(env.number, default=8000, least=1, most=65535),
    "devices": lambda name: [f"{each.resource} {len(each.devices)}" for each in env.devices(name)],
    "redis": env.redis_url,
    "redis-of-dev": partial(env.redis_url, cluster="dev"),
    "in-place": partial(env.webhooks, way="in-place"),
    "beside": partial(env.webhooks, way="beside"),
    "webhooks": partial(env.webhooks, way=""),
    "webhooks-of-several": partial(env.webhooks, way="in-place", has_several=True),
    "part": partial(env.part, has_several=False),
    "part-of-several": partial(env.part, has_several=True),
    "one-of": lambda name: env.one_of_clusters(name, clusters=(HOME, DEV)).name,
    "one-of-none": partial(env.one_of_clusters, clusters=()),
}


@parts("volcano_ui/settings", "what can be read", "what is refused with the remedy")
def test_a_variable_is_read_or_refused_with_the_remedy_and_without_its_password(monkeypatch, part):
    for _, given, expected in part.lines:
        reader, value = given.split(" ", 1)
        monkeypatch.setenv("VOLCANO_UI_X", yaml.safe_load(value))
        if part.title == "what can be read":
            found = READ[reader]("X")
            assert (list(found) if isinstance(found, tuple) else found) == yaml.safe_load(expected), given
        else:
            with pytest.raises(ImproperlyConfigured, match=expected) as refusal:
                READ[reader]("X")
            assert "hunter2" not in str(refusal.value)


@parts("volcano_ui/settings", "databases", "databases as they are shown")
def test_database_url(part, monkeypatch):
    def read(url):
        monkeypatch.setenv("DATABASE_URL", yaml.safe_load(url))
        found = env.database(Path("/data/db.sqlite3"), instance="host-1")
        if part.title != "databases":
            return env.database_label(found)
        assert found["ENGINE"] == "django.db.backends.postgresql"
        usual = {**env.POSTGRESQL, "application_name": "host-1"}
        options = {name: value for name, value in found["OPTIONS"].items() if usual.get(name) != value}
        assert usual.keys() <= found["OPTIONS"].keys()
        return [*(found[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME")), options]

    part.check(read)


@parts("volcano_ui/settings", "no databases")
def test_wrong_database_url_is_refused_without_its_password(part, monkeypatch, tmp_path):
    several = ("", "postgresql://ann:hunter2@db/volcano", "DATABASE_URL is .* Write {cluster}")
    for number, (_, url, pattern) in enumerate([several, *part.lines]):
        monkeypatch.setenv("DATABASE_URL", yaml.safe_load(url))
        with pytest.raises(ImproperlyConfigured, match=pattern) as refusal:
            env.database(tmp_path / "db", "" if number else "dev")
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


@cases("name, value", {
    "an address": ("VOLCANO_UI_REDIS_URL", "foo://x"),
    "a kubeconfig that is not there": ("VOLCANO_UI_KUBECONFIG", "/no/such/file"),
    "a word": ("VOLCANO_UI_WAY", "aside"),
    "a part that there is not": ("VOLCANO_UI_ONLY", "pages"),
    "a cluster without a kubeconfig": ("VOLCANO_UI_CLUSTERS", "home=embedded,dev"),
})  # fmt: skip
def test_settings_are_refused_by_the_name_of_the_wrong_one(monkeypatch, name, value):
    """What every command then says in a sentence, as tests/volcano_ui/test_up.py shows of one."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured, match=rf"^{name} is '{value}'"):
        runpy.run_path(settings.__file__)


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
