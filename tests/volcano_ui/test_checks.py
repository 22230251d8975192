import os
import shutil

import pytest
import yaml

from cluster.several.entries import Entry
from cluster.version import VERSION
from tests.tables import cases
from volcano_ui import checks, valkey
from volcano_ui.supervision import clusters, up
from volcano_ui.supervision.up import StartError


def ids(messages):
    return [message.id for message in messages]


def test_nothing_to_say_about_this_machine():
    assert checks.state_directory() + checks.sqlite_version() + checks.redis_server() + checks.secret_key_file() == []


def test_state_directory_below_a_file_is_refused_with_a_remedy(settings, tmp_path):
    (tmp_path / "file").touch()
    settings.DATA = tmp_path / "file" / "data"
    (message,) = checks.state_directory() + checks.version() + checks.whose_file()
    assert message.id == "volcano_ui.E001"
    assert str(settings.DATA) in message.msg
    assert "DATA=" in message.hint


def test_a_disk_that_is_read_only_is_called_so(settings, monkeypatch, tmp_path):
    # No test may mount anything, and root may write everywhere.
    settings.DATA = tmp_path / "data"
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "statvfs", lambda _: type("Disk", (), {"f_flag": os.ST_RDONLY}))
    (message,) = checks.state_directory()
    assert f"the disk of {tmp_path} is read-only" in message.msg
    assert message.hint.startswith("Mount it for writing, or choose another")


def test_disk_that_is_full_or_nearly_so(monkeypatch):
    for free, expected in ((10, ["volcano_ui.E002"]), (500 * 2**20, ["volcano_ui.W002"]), (2**40, [])):
        # The only way to a full disk without filling one.
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: type("Usage", (), {"free": free}))
        assert ids(checks.free_space()) == expected


@cases("stored, refused", {
    "a new one": (None, False),
    "of this version": (VERSION, False),
    "of an older one": ("0.0.9", False),
    "of a newer one": ("99.0.0", True),
})  # fmt: skip
def test_state_directory_of_a_newer_version_is_refused(settings, tmp_path, stored, refused):
    settings.DATA = tmp_path
    if stored is not None:
        (tmp_path / "version").write_text(f"{stored}\n")
    found = checks.version()
    assert ids(found) == ["volcano_ui.E009"] * refused
    if refused:
        assert f"is of version 99.0.0, and this is {VERSION}. Nothing was written" in found[0].msg
        assert "restore a backup from before it: docs/how-to/upgrade.md" in found[0].hint
    else:
        assert up._note_version() == ("" if stored != "0.0.9" else f"What version 0.0.9 left goes on with {VERSION}.")
        assert (tmp_path / "version").read_text() == f"{VERSION}\n"


def test_redis_that_does_not_answer_is_named_without_its_password(settings, redis_url):
    settings.REDIS_URL = redis_url
    assert checks.redis_answers() == []
    settings.REDIS_URL = "redis://:hunter2@127.0.0.1:1/0"
    (message,) = checks.redis_answers()
    assert message.id == "volcano_ui.E005"
    assert "127.0.0.1:1" in message.msg
    assert "hunter2" not in message.msg


def test_old_sqlite_no_redis_to_start_and_a_key_that_others_can_read_are_told(settings, monkeypatch, tmp_path):
    monkeypatch.setattr("sqlite3.sqlite_version_info", (3, 34, 1))
    assert ids(checks.sqlite_version()) == ["volcano_ui.E003"]
    settings.REDIS_URL = valkey.url(settings.DATA)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("platform.system", lambda: "Plan9")
    assert ids(checks.redis_server()) == ["volcano_ui.E004"]
    settings.DATA = tmp_path
    (tmp_path / "secret-key").touch()
    (tmp_path / "secret-key").chmod(0o644)
    assert ids(checks.secret_key_file()) == ["volcano_ui.W006"]


def test_tls_in_front_by_nobody_who_is_named(settings):
    for https, proxies, expected in ((False, [], []), (True, [], ["volcano_ui.W010"]), (True, ["127.0.0.1"], [])):
        settings.HTTPS, settings.TRUSTED_PROXIES = https, proxies
        assert ids(checks.trusted_proxies()) == expected


@pytest.fixture
def kubeconfig(tmp_path):
    config = {
        "contexts": [{"name": name, "context": {"cluster": name}} for name in ("dev", "prod")],
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}"}} for name in ("dev", "prod")],
        "current-context": "dev",
    }
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    return str(tmp_path / "config")


def test_named_clusters_are_pinned_or_refused_before_anything_is_started(kubeconfig):
    named = [Entry("home"), Entry("a", kubeconfig), Entry("b", kubeconfig, "prod", "read-only")]
    pinned = [Entry("home"), Entry("a", kubeconfig, "dev"), Entry("b", kubeconfig, "prod", "read-only")]
    assert clusters._pinned(named) == pinned, "the current context stays the same while it runs"
    with pytest.raises(StartError, match="a and b of VOLCANO_UI_CLUSTERS are the same cluster; leave one out"):
        clusters._pinned([Entry("a", kubeconfig), Entry("b", kubeconfig, "dev")])
    with pytest.raises(StartError, match=r"has 'a=.*#none': .* no context 'none'\. It has dev, prod\."):
        clusters._pinned([Entry("a", kubeconfig, "none")])
