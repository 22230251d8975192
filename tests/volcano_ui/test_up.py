"""The supervisor, from outside: real processes, real signals."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess

import psycopg
import pytest
from django.conf import settings

from cluster.remote.target import Target
from cluster.rules import node_engines, node_walls
from cluster.store import Create, Patch, store
from kube.resources import NODES
from node.agent import machine
from proof.harness import services
from proof.harness.waiting import until
from tests.cluster.store.forgetting import forget
from tests.tables import cases
from tests.volcano_ui.system import System
from volcano_ui import probes, up

# What a program's command line contains, and what `up` calls it.
WEB, API_SERVER, REDIS, CONTROLLERS, JOBS, SCHEDULER, BEAT, AGENT = PROGRAMS = {
    "volcano_ui.web": "web",
    "volcano_ui.apiserver": "apiserver",
    "redis.sock": "redis",
    "manage.py worker controllers": "controllers",
    "manage.py worker jobs": "jobs",
    "manage.py worker scheduler": "scheduler",
    "manage.py beat": "beat",
    "manage.py agent": "agent",
}


KUBECONFIG = """
current-context: there
contexts: [{name: there, context: {cluster: there, user: me}}]
clusters: [{name: there, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {}}]
"""


@pytest.fixture
def start(tmp_path):
    """Start systems that are stopped, and seen to leave nothing, at the end."""
    started = []

    def begin(data=tmp_path / "data", **options):
        started.append(System(data, **options))
        return started[-1]

    yield begin
    for system in started:
        system.stop()
    for system in started:
        until(lambda system=system: not system.pids(), what="an end without processes")


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    system = System(tmp_path_factory.mktemp("up") / "data")
    try:
        system.said("^Open ")
        yield system
    finally:
        system.stop()


def refused(system, words):
    """It ends, and says why in a sentence."""
    system.said(words)
    assert system.ended() == 1
    assert not [line for line in system.lines if "Traceback" in line or "hunter2" in line]


def test_it_says_its_address_at_last_and_what_keeps_pods_from_the_machine(system):
    (line,) = [line for line in system.lines if line.startswith("Open")]
    assert line.startswith(f"Open http://127.0.0.1:{system.port}/")
    assert system.healthy()
    (line,) = [line for line in system.lines if "wall round pods" in line]
    assert line.startswith(("The wall round pods holds: ", "There is no wall round pods: pods reach "))
    files = [*system.data.glob("db.sqlite3*"), *(system.data / "logs").iterdir(), system.data / "secret-key"]
    assert {"db.sqlite3", "web.log", "agent.log"} <= {file.name for file in files}
    assert not [file for file in files if file.stat().st_mode & 0o077], "they are for their owner"


@pytest.mark.parametrize("part", [WEB, REDIS, CONTROLLERS, JOBS, SCHEDULER, BEAT])
def test_killed_process_is_started_again(system, part):
    before = system.pid(part)
    system.kill(part)
    assert system.pid(part) != before
    until(system.healthy, what="health")
    system.said("was killed by SIGKILL; starting it again in 0")
    name = PROGRAMS[part]
    assert f"{name} was killed by SIGKILL" in (system.data / "logs" / f"{name}.log").read_text()


def test_second_up_on_one_state_directory_or_port_is_refused(system, start):
    refused(System(system.data), rf"pid {system.process.pid}\b")
    words = rf"Port {system.port} is taken by another program. Choose another: make up PORT=\d+"
    refused(start(port=system.port), words)


@pytest.mark.parametrize("recipe", ["loginlink", "kubeconfig"])
def test_commands_know_the_ports_of_what_runs(system, tmp_path, recipe):
    file = tmp_path / "kubeconfig"
    # What is installed here stays as it is.
    command = ["make", "-o", ".venv/runtime", recipe, f"DATA={system.data}", f"FILE={file}"]
    # Nor has it what the make was told that runs the tests.
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("VOLCANO_UI_", "DJANGO_", "MAKE", "MFLAGS", "ARGS"))
    }
    done = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "No “make up” runs" not in done.stderr
    api = system.environment["VOLCANO_UI_API_PORT"]
    wanted = f"http://127.0.0.1:{system.port}/login/" if recipe == "loginlink" else f"https://127.0.0.1:{api}\n"
    assert wanted in (done.stdout if recipe == "loginlink" else file.read_text())


def test_file_that_is_no_database_and_state_directory_that_cannot_be_made_are_refused(start, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "db.sqlite3").write_bytes(b"not a database" * 1000)
    refused(start(), "The database cannot be used: file is not a database. Move .*db.sqlite3 away")
    (tmp_path / "file").touch()
    refused(start(tmp_path / "file" / "data"), "cannot be written to: not a directory.*DATA=/some/dir")


@pytest.mark.parametrize("kind", ["file", "server"])
def test_somebody_elses_database_is_refused_before_it_is_touched(start, tmp_path, request, kind):
    (tmp_path / "data").mkdir()
    with contextlib.ExitStack() as stack:
        if kind == "file":
            file = tmp_path / "data" / "db.sqlite3"
            database, variables = stack.enter_context(contextlib.closing(sqlite3.connect(file))), {}
        else:
            server = request.getfixturevalue("postgres_url")
            url = stack.enter_context(services.postgres_database(server, "volcano_ui_shop"))
            database = stack.enter_context(psycopg.connect(server, dbname="volcano_ui_shop", autocommit=True))
            variables = {"DATABASE_URL": url}
        database.execute("CREATE TABLE auth_user (id integer)")
        refused(start(**variables), r"^✗ The database \S+ is somebody else's: it has tables \(auth_user\)")
        listed = "sqlite_master WHERE type = 'table'" if kind == "file" else "pg_tables WHERE schemaname = 'public'"
        assert database.execute(f"SELECT count(*) FROM {listed}").fetchone() == (1,)
    if kind == "file":
        assert file.stat().st_mode & 0o077
        made = {path.name for path in file.parent.iterdir()}
        assert made <= {"db.sqlite3", "secret-key", "redis-password"}


EMBEDDED = "^✗ VOLCANO_UI_ONLY is 'works', and the embedded cluster is of one machine.*VOLCANO_UI_KUBECONFIG"


@cases("name, value, words", {
    "a number": ("VOLCANO_UI_NODES", "-1", "^✗ .*VOLCANO_UI_NODES"),
    "an address": ("VOLCANO_UI_REDIS_URL", "foo://x", "^✗ .*VOLCANO_UI_REDIS_URL"),
    "a kubeconfig that is not there": ("VOLCANO_UI_KUBECONFIG", "/no/such/file", "^✗ .*VOLCANO_UI_KUBECONFIG"),
    "a word": ("VOLCANO_UI_WAY", "aside", "^✗ .*VOLCANO_UI_WAY"),
    "a part that there is not": ("VOLCANO_UI_ONLY", "pages", "^✗ .*VOLCANO_UI_ONLY"),
    "a part of an embedded cluster": ("VOLCANO_UI_ONLY", "works", EMBEDDED),
    "a cluster without a kubeconfig": ("VOLCANO_UI_CLUSTERS", "home=embedded,dev", "^✗ .*VOLCANO_UI_CLUSTERS"),
    "not of this machine": ("VOLCANO_UI_LISTEN", "203.0.113.1", "^✗ .*VOLCANO_UI_LISTEN"),
    "a server that is away": ("DATABASE_URL", "postgresql://u:hunter2@127.0.0.1:1/x", "^✗ .*DATABASE_URL"),
    "a Redis that is away": ("VOLCANO_UI_REDIS_URL", "redis://127.0.0.1:1/0", "Redis at .* does not answer.*REDIS_URL"),
})  # fmt: skip
def test_wrong_setting_is_refused_in_a_sentence(start, name, value, words):
    refused(start(**{name: value}), words)


SHARED = ("DATABASE_URL", "VOLCANO_UI_REDIS_URL", "VOLCANO_UI_SECRET_KEY")


@pytest.mark.parametrize("given", [(), SHARED[:2]], ids=["nothing", "all but one"])
def test_part_that_could_not_meet_the_others_is_refused_by_what_is_missing(start, tmp_path, given):
    values = {"DATABASE_URL": "postgresql:///parts", "VOLCANO_UI_REDIS_URL": "redis://127.0.0.1:1/0"}
    config = tmp_path / "config"
    config.write_text(KUBECONFIG)
    part = start(VOLCANO_UI_ONLY="web", VOLCANO_UI_KUBECONFIG=str(config), **{name: values[name] for name in given})
    assert part.ended() == 1
    told = [line for line in part.lines if line.startswith("✗")]
    assert [any(f"and {name} is not set" in line for line in told) for name in SHARED] == [
        name not in given for name in SHARED
    ]


@pytest.mark.parametrize("part", PROGRAMS)
def test_each_process_ends_by_itself_when_it_is_told_to(system, part):
    """So that `up` need not wait for as long as it has patience, and then kill."""
    system.said("^Open ")
    before, name = system.pid(part), PROGRAMS[part]
    seen = len(system.lines)
    os.kill(before, signal.SIGTERM)
    end = until(lambda: next((line for line in system.lines[seen:] if f"✗ {name} " in line), None), what="its end")
    assert "SIGKILL" not in end
    assert system.pid(part) != before
    until(system.healthy, what="health")


def test_signal_while_starting_leaves_nothing(start):
    system = start()
    system.said("Redis")
    assert system.stop() == 0
    assert system.pids() == {}


def test_nodes_have_reported_also_when_history_is_forgotten_at_once(transactional_db, settings):
    settings.NODES = 0
    before = store.revision()
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    store.write(Create(NODES, {"metadata": {"name": "here"}, "status": ready}))
    store.write(Patch(NODES, "", "here", {"metadata": {"labels": {"a": "b"}}}))
    forget()
    probes.ask_nodes(before)
    with pytest.raises(TimeoutError):
        probes.ask_nodes(store.revision())


@cases("nodes, begins", {
    "one": (["first"], ["There is no wall", "Images do not run, commands do: off."]),
    "several": (["first", "second"], ["first: There", "second: There", "first: Images", "second: Images"]),
})  # fmt: skip
def test_sentences_about_nodes_name_them_where_there_are_several(transactional_db, settings, nodes, begins):
    settings.TARGET = None
    said = {node_walls.ANNOTATION: "none: pods reach all", node_engines.ANNOTATION: "none: off"}
    for name in nodes:
        machine.renew(store, name, 0)  # as nodes with an agent of their own do
        store.write(Create(NODES, {"metadata": {"name": name, "annotations": said}}))
    found = up._about_walls({})
    assert len(found) == len(begins)
    assert all(line.startswith(words) for line, words in zip(found, begins, strict=True)), found


@cases("holds, shows", {
    "an embedded cluster's": ("", "https://one"),
    "another cluster's": ("https://one", "https://two"),
    "another cluster's, for an embedded one": ("https://one", ""),
})  # fmt: skip
def test_database_of_another_cluster_is_refused(transactional_db, settings, holds, shows):
    def show(server):
        settings.TARGET = Target("dev", server, "/config") if server else None

    show(holds)
    up._claim_database()
    store.write(Create(NODES, {"metadata": {"name": "here"}}))
    up._claim_database()
    show(shows)
    with pytest.raises(up.StartError, match=r"holds .* Give this cluster a database of its own"):
        up._claim_database()
