from __future__ import annotations

import multiprocessing
import stat

import pytest
from django.core.exceptions import ImproperlyConfigured

from volcano_ui import env


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param(
            "postgresql://ann:p%40ss@db.example:6432/batch?sslmode=require",
            ("ann", "p@ss", "db.example", 6432, "batch", {"sslmode": "require"}),
            id="all parts, escaped password, an option",
        ),
        pytest.param("postgres://db/batch", ("", "", "db", "", "batch", {}), id="short scheme"),
        pytest.param(
            "postgresql:///postgres?host=/run/pg&user=ann",
            ("ann", "", "/run/pg", "", "postgres", {}),
            id="socket",
        ),
    ],
)
def test_database_url(url, expected, monkeypatch, tmp_path):
    monkeypatch.setenv("DATABASE_URL", url)
    found = env.database(tmp_path / "db")
    assert found["ENGINE"] == "django.db.backends.postgresql"
    assert found["OPTIONS"].pop("server_side_binding")
    assert tuple(found[name] for name in ("USER", "PASSWORD", "HOST", "PORT", "NAME", "OPTIONS")) == expected


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
