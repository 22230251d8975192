"""Typed reads of VOLCANO_UI_* environment variables; an error names variable, value and remedy."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import ipaddress
import os
import re
import secrets
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from cluster.remote.http import target as targets
from cluster.remote.http.target import Target
from cluster.remote.webhooks import hooks
from cluster.remote.webhooks.hooks import Address
from cluster.several import entries
from cluster.several.entries import Entry
from node.rules import devices as node_devices
from node.rules.devices import Kind

PREFIX = "VOLCANO_UI_"
PROJECT = Path(__file__).resolve().parent.parent
# The options of connections to PostgreSQL, unless its URL sets others.
POSTGRESQL = {
    # The server parses and plans a statement once for a connection, not at each use.
    "server_side_binding": True,
    # A machine that vanished is given up within some 25 s, on either side: everybody waits for what it had locked.
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
    "options": " ".join(
        f"-c {each}"
        for each in (
            "tcp_keepalives_idle=10",
            "tcp_keepalives_interval=5",
            "tcp_keepalives_count=3",
            "tcp_user_timeout=25s",
            "idle_in_transaction_session_timeout=25s",
            # Waiting for a lock ends before that, so that a freed lock goes to fewer sessions which have gone meanwhile.
            "lock_timeout=20s",
        )
    ),
}
LONGEST_SESSION = 63  # letters of an application_name that PostgreSQL stores
# Otherwise it was installed from a wheel, which has no Makefile, no source of the front end and no folder to write in.
IS_CLONE = (PROJECT / "Makefile").is_file()


def text(name: str, default: str = "") -> str:
    """Return the variable, or default when it is unset or empty."""
    return os.environ.get(PREFIX + name) or default


def flag(name: str, *, default: bool) -> bool:
    """Read a yes/no variable; only 0 and 1 are accepted."""
    value = text(name)
    if not value:
        return default
    if value not in ("0", "1"):
        raise ImproperlyConfigured(f"{PREFIX}{name} is {value!r}; set it to 0 or 1.")
    return value == "1"


def number(name: str, default: int, *, least: int = 0, most: int = 2**31) -> int:
    """Read a whole number between least and most."""
    value = text(name)
    if not value:
        return default
    if not value.isdecimal() or not least <= int(value) <= most:
        raise ImproperlyConfigured(f"{PREFIX}{name} is {value!r}; set it to a whole number from {least} to {most}.")
    return int(value)


def directory(name: str, default: Path) -> Path:
    """Read a path; a leading ~ is the home directory."""
    return Path(text(name) or default).expanduser().absolute()


def default_state_directory() -> Path:
    """Return the default state directory: `data` in a clone, else one in the user's folder for data (XDG)."""
    home = Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share")
    return PROJECT / "data" if IS_CLONE else home / "volcano-ui"


def instance(data: Path) -> str:
    """Return the name of the `up` on a state directory of this machine or container, where one runs at a time.

    It is the application_name of its sessions in PostgreSQL (`cluster.store.sql.end_sessions`), and no longer than that may be.
    """
    name = f"{socket.gethostname()}-{hashlib.sha256(os.fsencode(data)).hexdigest()[:8]}"
    if len(name) <= LONGEST_SESSION:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{name[: LONGEST_SESSION - len(digest) - 1]}-{digest}"


def up_command(**options: object) -> str:
    """Return what a person types to start the system: `make up PORT=9000`, or `volcano-ui up --port=9000`."""
    if IS_CLONE:
        return " ".join(["make up", *(f"{name}={value}" for name, value in options.items())])
    flags = (f"--{name.lower().replace('_', '-')}={value}" for name, value in options.items())
    return " ".join(["volcano-ui up", *flags])


def command(name: str) -> str:
    """Return what a person types to run a command that has a recipe: `make loginlink`, or `volcano-ui loginlink`."""
    return f"{'make' if IS_CLONE else 'volcano-ui'} {name}"


def file(name: str) -> Path | None:
    """Read the path of a file, None when it is not set."""
    value = text(name)
    return Path(value).expanduser().absolute() if value else None


def content(name: str) -> str:
    """Read the file that a variable names, without the line break at its end; "" when it is not set."""
    path = file(name)
    if path is None:
        return ""
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {str(path)!r}, which cannot be read: {reason}. Name a file that this user may read."
        ) from None


def prefix(name: str) -> str:
    """Read the prefix of the names under which people are impersonated; it must not make one of the system's own names."""
    value = text(name)
    if value.startswith("system:") or not value.isascii() or not value.isprintable() or value != value.strip():
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {value!r}; set it to plain characters without spaces around them, such as 'oidc:'."
            " Names that begin with system: are the system's own."
        )
    return value


def issuer(name: str) -> str:
    """Read the address of an OpenID Connect provider: over TLS, unless it is on this machine."""
    value = text(name)
    parts = urlsplit(value)
    local = parts.scheme == "http" and parts.hostname in ("localhost", "127.0.0.1", "::1")
    if value and not (parts.hostname and (parts.scheme == "https" or local)):
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {value!r}; set it to the provider's address, such as https://login.example.org/realms/lab."
        )
    return value


def check_logins(issuer: str, scopes: list[str], admin_group: str, *, passwords: bool) -> None:
    """Refuse settings with which nobody, or the wrong people, could log in."""
    if not issuer and not passwords:
        raise ImproperlyConfigured(
            f"{PREFIX}PASSWORD_LOGIN is 0 and {PREFIX}OIDC_ISSUER is not set: nobody could log in. Set one of them."
        )
    if "openid" not in scopes:
        raise ImproperlyConfigured(
            f"{PREFIX}OIDC_SCOPES is {' '.join(scopes)!r}; begin it with openid, such as 'openid profile groups'."
        )
    if admin_group.startswith("system:"):
        raise ImproperlyConfigured(
            f"{PREFIX}OIDC_ADMIN_GROUP is {admin_group!r}; groups that begin with system: are the system's own."
        )


def words(name: str) -> list[str]:
    """Read a list separated by commas or spaces."""
    return text(name).replace(",", " ").split()


def networks(name: str) -> list[str]:
    """Read addresses and networks of addresses, separated by commas or spaces."""
    listed = words(name)
    for each in listed:
        try:
            ipaddress.ip_network(each)
        except ValueError as error:
            raise ImproperlyConfigured(
                f"{PREFIX}{name} has {each!r}: {error}. Name addresses or networks, such as 192.0.2.7 or 10.0.0.0/8."
            ) from None
    return listed


def directories(name: str) -> list[str]:
    """Read absolute paths separated by commas."""
    paths = [path.strip() for path in text(name).split(",") if path.strip()]
    for path in paths:
        if not path.startswith("/") or ".." in path.split("/"):
            raise ImproperlyConfigured(
                f"{PREFIX}{name} has {path!r}; name each directory from the root, such as /srv/data."
            )
    return paths


def devices(name: str) -> tuple[Kind, ...]:
    """Read the devices that this machine has for pods, beside those that are detected."""
    try:
        return node_devices.parse(text(name))
    except node_devices.DevicesError as error:
        raise ImproperlyConfigured(f"{PREFIX}{name} is {text(name)!r}: {error}") from None


def one_of(name: str, values: Sequence[str]) -> str:
    """Read one of some words, "" when it is not set."""
    value = text(name)
    if value and value not in values:
        raise ImproperlyConfigured(f"{PREFIX}{name} is {value!r}; set it to {' or '.join(values)}, or leave it empty.")
    return value


def part(name: str, *, has_several: bool) -> str:
    """Return which of the programs `up` starts, "" for all of them. `has_several` says that there are several clusters."""
    value = one_of(name, ("web", "works"))
    if value and has_several:
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {value!r} and {PREFIX}CLUSTERS is set: the programs of one cluster alone can be shared out."
            f" Leave {PREFIX}{name} empty, or show that cluster alone, with {PREFIX}KUBECONFIG."
        )
    return value


def target(name: str, context: str) -> Target | None:
    """Return the cluster that a context of a kubeconfig names ("" the current one), None when there is no kubeconfig."""
    value = text(name)
    if not value:
        return None
    try:
        return targets.find(value, context)
    except targets.TargetError as error:
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {value!r}: {error} Set it to a kubeconfig's file and {PREFIX}CONTEXT to one of"
            " its contexts, or leave both empty."
        ) from None


def webhooks(name: str, way: str, *, has_several: bool = False) -> Address | None:
    """Return the address at which an API server finds our admission webhooks; they need our controllers there (in-place).

    `has_several` says that there are several clusters, of which an address could serve one only.
    """
    value = text(name)
    if not value:
        return None
    if has_several:
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {value!r} and {PREFIX}CLUSTERS is set: webhooks are at one address, for one cluster."
            f" Leave {PREFIX}{name} empty, or show that cluster alone, with {PREFIX}KUBECONFIG."
        )
    if way != "in-place":
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {value!r}, and {PREFIX}WAY is not in-place: where our controllers do not work nothing is"
            " judged here. Leave it empty."
        )
    try:
        return hooks.address(value)
    except ValueError as error:
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {value!r}: {error}. Set it to where the API server reaches this process, such as"
            " 192.0.2.7:9443, or to a Service of its cluster, such as volcano-ui-webhooks.volcano-ui.svc:443."
        ) from None


def clusters(name: str, *others: str) -> tuple[Entry, ...]:
    """Read the list of clusters, empty if there is one only; refuse it beside `others`, which name a single cluster."""
    try:
        listed = entries.parse(text(name))
    except entries.EntriesError as error:
        raise ImproperlyConfigured(f"{PREFIX}{name} is {text(name)!r}: {error}") from None
    for other in others:
        if listed and text(other):
            raise ImproperlyConfigured(
                f"{PREFIX}{name} and {PREFIX}{other} are both set; leave {PREFIX}{other} empty and write what it says"
                f" into {PREFIX}{name}, as {entries.FORM}."
            )
    return listed


def one_of_clusters(name: str, clusters: Sequence[Entry]) -> Entry | None:
    """Return the cluster that these processes serve, by default the first of several; None if there is one only."""
    value = text(name)
    by_name = {entry.name: entry for entry in clusters}
    if value and value not in by_name:
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {value!r}; set it to {' or '.join(by_name)}, or leave it empty."
            if by_name
            else f"{PREFIX}{name} is {value!r}, but {PREFIX}CLUSTERS names none; leave it empty."
        )
    return by_name[value] if value else next(iter(clusters), None)


def target_of(entry: Entry) -> Target | None:
    """Return the target of one of several clusters, None for the embedded one."""
    if not entry.kubeconfig:
        return None
    try:
        return targets.find(entry.kubeconfig, entry.context)
    except targets.TargetError as error:
        raise ImproperlyConfigured(f"{PREFIX}CLUSTERS has {str(entry)!r}: {error}") from None


def for_cluster(name: str, value: str, cluster: str) -> str:
    """Return an address with {cluster} replaced by a cluster's name; refuse one without it if there are several clusters."""
    if value and cluster and "{cluster}" not in value:
        raise ImproperlyConfigured(
            f"{name} is {_without_password(value)!r} and {PREFIX}CLUSTERS is set: each cluster needs one of its own."
            f" Write {{cluster}} where its name belongs, or leave {name} empty."
        )
    return value.replace("{cluster}", cluster)


def secret(name: str, file: Path) -> str:
    """Return the variable, or the content of a file, which is created on first use and readable by its owner only.

    If the file cannot be written a key for this process alone is returned, so that people get the
    system check about the state directory instead of a traceback.
    """
    return text(name) or secret_in(file)


def secret_in(file: Path) -> str:
    """Return the content of file, as `secret` does."""
    try:
        if not file.exists():
            _create_secret(file)
        return file.read_text().strip()
    except OSError:
        return secrets.token_urlsafe(48)


def _create_secret(file: Path) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f"{file.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(secrets.token_urlsafe(48))
    # Processes that start together must agree on one key: link, unlike rename, fails for the second.
    with contextlib.suppress(FileExistsError):
        os.link(draft, file)
    draft.unlink()


def database(file: Path, cluster: str = "", *, instance: str = "", synchronous: str = "normal") -> dict[str, Any]:
    """Return Django's description of the database: PostgreSQL by DATABASE_URL, otherwise SQLite in file.

    `cluster` is the name of the one of several clusters whose database it is. `instance` is the name of this `up`, the
    application_name of its sessions in PostgreSQL. `synchronous` says when SQLite waits for the disk: at each commit
    ("full"), or at checkpoints ("normal").
    """
    url = text("DATABASE_URL") or os.environ.get("DATABASE_URL", "")
    url = for_cluster("DATABASE_URL", url, cluster)
    return _postgresql(url, instance) if url else _sqlite(file, synchronous)


def database_label(database: dict[str, Any]) -> str:
    """Return host and name of a database in Django's form, without secrets, for messages."""
    if database["ENGINE"] != "django.db.backends.postgresql":
        return str(database["NAME"])
    host, port, name = (str(database[part]) for part in ("HOST", "PORT", "NAME"))
    if host.startswith("/"):
        return f"postgresql:///{name}?host={host}" + (f"&port={port}" if port else "")
    host = f"[{host}]" if ":" in host else host
    return f"postgresql://{host}{f':{port}' if port else ''}/{name}"


def redis_prefix(secret_key: str, database: dict[str, Any]) -> str:
    """Return the prefix of all names of an installation in Redis: the same in its processes, another in each installation.

    An installation is a secret key and a database: a copy of its database, such as a backup, is at another place, and
    two machines with databases of one name have different keys.
    """
    schema = re.search(r"search_path=(\S+)", database["OPTIONS"].get("options", ""))
    identity = f"{database_label(database)} {schema[1] if schema else ''}"
    return f"volcano-ui:{hmac.new(secret_key.encode(), identity.encode(), 'sha256').hexdigest()[:16]}:"


def redis_url(name: str, cluster: str = "") -> str:
    """Return the address of a Redis, or an empty text, with {cluster} replaced by the name of one of several clusters."""
    url = text(name).replace("{cluster}", cluster)
    if url and urlsplit(url).scheme not in ("redis", "rediss", "unix"):
        raise ImproperlyConfigured(
            f"{PREFIX}{name} is {_without_password(url)!r}; set it to redis://host:6379/0 or unix:///path?db=0, "
            "or leave it empty for a Redis of its own."
        )
    return url


def _sqlite(file: Path, synchronous: str) -> dict[str, Any]:
    return {
        "ENGINE": "cluster.sqlite",
        "NAME": file,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 30,
            "init_command": (
                # The page size of a new database. An object has 1 to 3 KB, so SQLite's default of 4 KB would leave much empty.
                "PRAGMA page_size=8192; PRAGMA journal_mode=WAL;"
                f" PRAGMA synchronous={synchronous.upper()}; PRAGMA cache_size=-32000;"
                # 16 MB, which a second of heavy work writes: at each checkpoint all writers wait for the disk.
                " PRAGMA wal_autocheckpoint=2000;"
            ),
        },
    }


def _postgresql(url: str, instance: str) -> dict[str, Any]:
    parts = urlsplit(url)
    name = unquote(parts.path.lstrip("/"))
    if parts.scheme not in ("postgres", "postgresql") or not name:
        raise ImproperlyConfigured(
            f"DATABASE_URL is {_without_password(url)!r}; set it to postgresql://user:password@host:5432/name, "
            "or leave it empty for SQLite."
        )
    options: dict[str, Any] = POSTGRESQL | dict(parse_qsl(parts.query)) | {"application_name": instance}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or options.pop("user", "")),
        "PASSWORD": unquote(parts.password or options.pop("password", "")),
        # A URL's host cannot hold the directory of a Unix socket, so libpq takes it as a parameter.
        "HOST": unquote(parts.hostname or "") or options.pop("host", ""),
        "PORT": parts.port or options.pop("port", ""),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }


def _without_password(url: str) -> str:
    before, at, after = url.rpartition("@")
    return f"{before.rpartition(':')[0]}:***@{after}" if at and ":" in before.partition("//")[2] else url
