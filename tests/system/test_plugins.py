"""Jobs whose pods find each other by what plugins give them, with real processes."""

import base64
from pathlib import Path

import pytest

from kube.resources import CONFIGMAPS, NETWORK_POLICIES, SECRETS, SERVICES
from proof.harness.waiting import until
from proof.systems.work import held, job, shell, task

pytestmark = [pytest.mark.system, pytest.mark.both_modes]

# What torch.distributed does with these variables, without torch: who has rank 0 listens, the others tell it theirs.
RENDEZVOUS = """
import os, socket, time
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(where) as server:
        calls = {}
        while len(calls) < size - 1:
            call = server.accept()[0]
            if told := call.makefile().readline():  # who only looks whether the port answers says nothing
                calls[int(told)] = call
        for call in calls.values():
            call.sendall(b"all here\\n")
    print(f"ranks {sorted(calls)} have come to {where[0]}")
else:
    while True:
        try:
            call = socket.create_connection(where)
            break
        except (ConnectionRefusedError, socket.gaierror):
            time.sleep(0.05)
    call.sendall(f"{rank}\\n".encode())
    assert call.makefile().readline() == "all here\\n"
"""

LOOK = """
set -e
cat /etc/volcano/main.host; echo
echo "number $VC_MAIN_NUM hosts $VC_MAIN_HOSTS index $VC_TASK_INDEX"
for host in $(cat /etc/volcano/main.host) look-main-1; do until getent hosts "$host"; do sleep 0.05; done; done
stat -L -c '%a %n' /keys /keys/*
cat /keys/authorized_keys /keys/config
until [ -e {go} ]; do sleep 0.05; done
"""


def log(person, name, pod):
    answer = person.get(f"/jobs/default/{name}/log/", pod=pod)
    return answer.text if answer.status_code == 200 else ""


def made(watcher, name):
    """Return the kinds of what plugins made for a job."""
    kinds, names = (CONFIGMAPS, SECRETS, SERVICES, NETWORK_POLICIES), {name, f"{name}-svc", f"{name}-ssh"}
    return {kind.kind for kind in kinds for each in watcher.store.find(kind) if each.name in names}


def test_four_processes_meet_at_the_address_that_pytorch_gives_them(person, watcher):
    meet = ["python3", "-c", RENDEZVOUS]
    tasks = [task(meet, name="master"), task(meet, name="worker", replicas=3)]
    person.create(job("meeting", *tasks, plugins={"pytorch": []}))
    done = watcher.reaches("meeting", "Completed", "Failed")["status"]
    output = log(person, "meeting", "meeting-master-0")
    assert done["state"]["phase"] == "Completed", output
    assert "ranks [1, 2, 3] have come to meeting-master-0.meeting" in output
    assert done["controlledResources"] == {"plugin-pytorch": "pytorch", "plugin-svc": "svc"}
    assert made(watcher, "meeting") == set()


@pytest.mark.shows("5.5/wait-for-master")
def test_workers_wait_until_the_master_listens(person, watcher, go):
    def init_state():
        statuses = watcher.pods("late").get("late-worker-0", {}).get("status", {}).get("initContainerStatuses") or [{}]
        return statuses[0].get("state", {})

    late = f"until [ -e {go} ]; do sleep 0.05; done; exec python3 -c '{RENDEZVOUS}'"
    tasks = [shell(late, sees=go.parent, name="master"), task(["python3", "-c", RENDEZVOUS], name="worker")]
    person.create(job("late", *tasks, plugins={"pytorch": ["--wait-master-enabled"]}))
    until(lambda: "running" in str(init_state()), what="the waiting container")
    assert watcher.phase("late") != "Completed"
    go.touch()
    watcher.reaches("late", "Completed")
    assert init_state()["terminated"]["exitCode"] == 0


def test_pod_finds_its_peers_and_has_its_keys_to_itself(person, watcher, go):
    plugins = {"svc": [], "ssh": ["--ssh-key-file-path=/keys", "--ssh-port=2022"], "env": []}
    person.create(job("look", shell(LOOK.replace("{go}", str(go)), sees=go.parent, replicas=2), plugins=plugins))
    until(lambda: "Port 2022" in log(person, "look", "look-main-0"), what="the last of what it sees")
    secret = watcher.store.get(SECRETS, "default", "look-ssh").object["data"]
    output = log(person, "look", "look-main-0")
    go.touch()
    watcher.reaches("look", "Completed")
    hosts = "look-main-0.look", "look-main-1.look"
    assert output.splitlines()[:3] == [*hosts, f"number 2 hosts {','.join(hosts)} index 0"]
    addresses = [line.split()[0] for line in output.splitlines() if line.startswith("127.")]
    assert len(addresses) == 3
    assert addresses[0] != addresses[1] == addresses[2]
    for file in ("authorized_keys", "config", "id_rsa", "id_rsa.pub"):
        assert f"644 /keys/{file}\n" in output
    assert base64.b64decode(secret["id_rsa.pub"]).decode() in output
    assert base64.b64decode(secret["config"]).decode().splitlines()[-1] in output
    assert not Path("/keys").exists(), "the machine itself sees the keys of a pod"


def test_private_key_is_in_no_page_and_no_log(person, watcher, system, go):
    person.create(job("quiet", held(go), plugins={"ssh": []}))
    watcher.reaches("quiet", "Running")
    encoded = watcher.store.get(SECRETS, "default", "quiet-ssh").object["data"]["id_rsa"]
    key = base64.b64decode(encoded).decode().splitlines()[1]
    for page in ("/", "/jobs/default/quiet/", "/events/", "/audit/", "/jobs/default/quiet/?tab=yaml"):
        text = person.get(page).text
        assert (key in text, encoded in text) == (False, False), page
    assert key not in system.logs() + system.cluster.logs()
    go.touch()
    watcher.reaches("quiet", "Completed")
