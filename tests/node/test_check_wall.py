from __future__ import annotations

import io

import pytest
from django.core.management import call_command

from node import walls
from node.agent import networks, wall_check
from node.agent.spawn import Spawner
from node.shim.landlock import SCOPES_ABI
from node.shim.order import Wall


@pytest.mark.parametrize("network", ["own", "closed", "machine"])
def test_it_tries_the_wall_of_this_machine_and_tells_what_it_found(attempts, settings, network):
    settings.POD_NETWORK = network
    wall = networks.chosen(attempts.spawner.probe(attempts.root / "probe"), settings.POD_NETWORK)
    out, code = io.StringIO(), 0
    try:
        call_command("check-wall", stdout=out)
    except SystemExit as end:
        code = end.code
    lines = out.getvalue().splitlines()
    assert walls.describe(wall) in lines[0]
    told = {line.split(None, 1)[1]: line.split()[0] for line in lines if "held" in line}
    whole = wall.mounts != "none" and wall.pids and wall.landlock and wall.seccomp
    if whole:
        tried = wall_check.ATTEMPTS.keys() - ({wall_check.BY_NETWORK} if not wall.networks else set())
        is_scoped = wall.networks or wall.landlock >= SCOPES_ABI
        through = {"connect to a socket without a path"} if not is_scoped else set()
        assert told == dict.fromkeys(tried - through, "held")
    shares = not wall.networks and network != "closed"
    assert any(line.startswith("  open") for line in lines) is shares
    assert code == ((0 if is_scoped else 1) if whole else code)


def test_it_fails_where_pods_are_to_have_a_network_that_cannot_be_had(settings, monkeypatch):
    settings.POD_NETWORK = "closed"
    monkeypatch.setattr(Spawner, "probe", lambda *_: Wall("none", landlock=7, seccomp=True))
    monkeypatch.setattr(wall_check, "tried", lambda *_: [])
    out = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("check-wall", stdout=out)
    assert "  refused      all pods: a network without a way out cannot be had" in out.getvalue().splitlines()


def test_without_a_wall_the_attempts_get_through(attempts):
    """Otherwise a slip in one of them would look like a wall."""
    found = {one.words for one in wall_check.tried(attempts.spawner, Wall()) if one.got_through}
    kernels = {
        "read the hashes of passwords",
        "write among the machine's programs",
        "mount something",
        "make a user namespace",
    }
    assert found | kernels == wall_check.ATTEMPTS.keys() - {wall_check.BY_NETWORK}
