"""The files of the plugin ssh in a pod, as OpenSSH's programs see them. Needs root, whose directory they are in."""

import base64
from pathlib import Path

import pytest

from kube.resources import SECRETS
from proof.harness.waiting import until
from proof.systems.work import job, shell

pytestmark = [pytest.mark.system, pytest.mark.needs("ssh-keygen")]

LOOK = """
stat -L -c '%a %U %n' /root/.ssh /root/.ssh/*
ssh-keygen -y -f /root/.ssh/id_rsa
ssh-keygen -l -f /root/.ssh/id_rsa
ssh -T -G look-main-1 | grep -i -E '^(hostname|port|stricthostkeychecking|userknownhostsfile) '
echo that is all
until [ -e {go} ]; do sleep 0.05; done
"""


def test_ssh_reads_its_files_in_a_pod(person, watcher, tmp_path):
    go, own = tmp_path / "out" / "go", Path("/root/.ssh")
    before = own.exists()
    tasks = [shell(LOOK.format(go=go), sees=go.parent, replicas=2)]
    person.create(job("look", *tasks, plugins={"svc": [], "ssh": ["--ssh-port=2022"]}))
    until(lambda: "that is all" in _log(person), what="the last of what it sees")
    public = watcher.store.get(SECRETS, "default", "look-ssh").object["data"]["id_rsa.pub"]
    output = _log(person)
    go.touch()
    watcher.reaches("look", "Completed")
    assert output.splitlines() == [
        "755 root /root/.ssh",
        *(f"600 root /root/.ssh/{name}" for name in ("authorized_keys", "config", "id_rsa", "id_rsa.pub")),
        base64.b64decode(public).decode().strip(),
        *(line for line in output.splitlines() if line.startswith("2048 SHA256:")),
        "hostname look-main-1.look",
        "port 2022",
        "stricthostkeychecking false",
        "userknownhostsfile /dev/null",
        "that is all",
    ]
    assert own.exists() == before, "the machine's root has got the files of a pod"


def _log(person):
    answer = person.get("/jobs/default/look/log/", pod="look-main-0")
    return answer.text if answer.status_code == 200 else ""
