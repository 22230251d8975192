"""The supervisor, from outside: real processes, real signals."""

import contextlib
import os
import signal
import sqlite3
import subprocess

import pytest
from django.conf import settings

from cluster.remote.http.target import Target
from cluster.rules.node import node_engines, node_walls
from cluster.store import Create, Patch, store
from kube.resources import NODES
from node.agent import machine
from proof.harness.waiting import until
from tests.cluster.store.forgetting import forget
from tests.tables import cases
from tests.volcano_ui.system import System
from volcano_ui.supervision import probes, up

# What a program's command line contains, and what `up` calls it.
PROGRAMS = {
    "volcano_ui.web": "web", "volcano_ui.apiserver": "apiserver", "redis.sock": "redis", "manage.py beat": "beat",
    **{f"manage.py worker {name}": name for name in ("controllers", "jobs", "scheduler")}, "manage.py agent": "agent",
}  # fmt: skip
KUBECONFIG = """
current-context: there
contexts: [{name: there, context: {cluster: there, user: me}}]
clusters: [{name: there, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {}}]
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    system = System(tmp_path_factory.mktemp("up") / "data")
    try:
        system.wait_for_line("^Open ")
        yield system
    finally:
        system.stop()


def refused(system, words):
    """It ends, and says why in a sentence."""
    system.wait_for_line(words)
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


@pytest.mark.parametrize("part", ["volcano_ui.web", "redis.sock", "manage.py worker jobs"])
def test_killed_process_is_started_again(system, part):
    before = system.pid(part)
    system.kill(part)
    assert system.pid(part) != before
    until(system.healthy, what="health")
    system.wait_for_line("was killed by SIGKILL; starting it again in 0")
    name = PROGRAMS[part]
    assert f"{name} was killed by SIGKILL" in (system.data / "logs" / f"{name}.log").read_text()


def test_second_up_on_one_state_directory_or_port_is_refused(system, start):
    refused(System(system.data), rf"pid {system.process.pid}\b")
    words = rf"Port {system.port} is taken by another program. Choose another: make up PORT=\d+"
    refused(start(port=system.port), words)


@pytest.mark.parametrize("recipe", ["loginlink", "kubeconfig"])
def test_commands_know_the_ports_of_what_runs(system, tmp_path, recipe):
    file = tmp_path / "kubeconfig"
    # What is installed here stays as it is. Nor has it what the make was told that runs the tests.
    command = ["make", "-o", ".venv/runtime", recipe, f"DATA={system.data}", f"FILE={file}"]
    others = ("VOLCANO_UI_", "DJANGO_", "MAKE", "MFLAGS", "ARGS")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(others)}
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
    refused(start("file/data"), "cannot be written to: not a directory.*DATA=/some/dir")


def test_somebody_elses_database_is_refused_before_it_is_touched(start, tmp_path):
    file = tmp_path / "data" / "db.sqlite3"
    file.parent.mkdir()
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute("CREATE TABLE auth_user (id integer)")
        refused(start(), r"^✗ The database \S+ is somebody else's: it has tables \(auth_user\)")
        assert database.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone() == (1,)
    assert file.stat().st_mode & 0o077
    assert {path.name for path in file.parent.iterdir()} <= {"db.sqlite3", "secret-key", "redis-password"}


EMBEDDED = "^✗ VOLCANO_UI_ONLY is 'works', and the embedded cluster is of one machine.*VOLCANO_UI_KUBECONFIG"


@cases("name, value, words", {
    "a number": ("VOLCANO_UI_NODES", "-1", "^✗ VOLCANO_UI_NODES is '-1'"),
    "a part of an embedded cluster": ("VOLCANO_UI_ONLY", "works", EMBEDDED),
    "not of this machine": ("VOLCANO_UI_LISTEN", "203.0.113.1", "^✗ .*VOLCANO_UI_LISTEN"),
    "a server that is away": ("DATABASE_URL", "postgresql://u:hunter2@127.0.0.1:1/x", "^✗ .*DATABASE_URL"),
    "a Redis that is away": ("VOLCANO_UI_REDIS_URL", "redis://127.0.0.1:1/0", "Redis at .* does not answer.*REDIS_URL"),
})  # fmt: skip
def test_wrong_setting_is_refused_in_a_sentence(start, name, value, words):
    refused(start(**{name: value}), words)


SHARED = ("DATABASE_URL", "VOLCANO_UI_REDIS_URL", "VOLCANO_UI_SECRET_KEY")


@cases("given", {"nothing": {}, "all but one": {SHARED[0]: "postgresql:///parts", SHARED[1]: "redis://127.0.0.1:1/0"}})
def test_part_that_could_not_meet_the_others_is_refused_by_what_is_missing(start, tmp_path, given):
    (tmp_path / "config").write_text(KUBECONFIG)
    part = start(VOLCANO_UI_ONLY="web", VOLCANO_UI_KUBECONFIG=str(tmp_path / "config"), **given)
    assert part.ended() == 1
    message = " ".join(line for line in part.lines if line.startswith("✗"))
    assert {name for name in SHARED if f"and {name} is not set" in message} == {*SHARED} - given.keys()


@pytest.mark.parametrize("part", PROGRAMS)
def test_each_process_ends_by_itself_when_it_is_told_to(system, part):
    """So that `up` need not wait for as long as it has patience, and then kill."""
    system.wait_for_line("^Open ")
    before, name = system.pid(part), PROGRAMS[part]
    seen = len(system.lines)
    os.kill(before, signal.SIGTERM)
    end = until(lambda: next((line for line in system.lines[seen:] if f"✗ {name} " in line), None), what="its end")
    assert "SIGKILL" not in end
    assert system.pid(part) != before
    until(system.healthy, what="health")


def test_signal_while_starting_leaves_nothing(start):
    system = start()
    system.wait_for_line("Redis")
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
    annotations = {node_walls.ANNOTATION: "none: pods reach all", node_engines.ANNOTATION: "none: off"}
    for name in nodes:
        machine.renew(store, name, 0)  # as nodes with an agent of their own do
        store.write(Create(NODES, {"metadata": {"name": name, "annotations": annotations}}))
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
