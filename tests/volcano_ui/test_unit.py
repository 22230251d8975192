"""The systemd unit: hardened, and nothing in it takes the wall round pods away."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest
from django.conf import settings

from node.shim import seccomp

UNIT = settings.BASE_DIR / "deploy" / "volcano-ui.service"
GROUPS = ("@clock", "@module", "@raw-io", "@reboot", "@swap")  # of system calls that neither pods nor the cluster need


@pytest.fixture(scope="module")
def unit():
    """The unit's settings, each with its values in order."""
    found = {}
    for line in UNIT.read_text().splitlines():
        if not line.startswith(("#", "[")) and "=" in line:
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("User", "volcano-ui"),
        ("UMask", "0077"),
        ("NoNewPrivileges", "yes"),
        ("CapabilityBoundingSet", ""),
        ("ProtectSystem", "strict"),
        ("ProtectHome", "yes"),
        ("PrivateTmp", "yes"),
        ("PrivateDevices", "yes"),
        ("ProtectClock", "yes"),
        ("ProtectKernelModules", "yes"),
        ("ProtectHostname", "yes"),
        ("RestrictSUIDSGID", "yes"),
        ("RestrictRealtime", "yes"),
        ("LockPersonality", "yes"),
        ("SystemCallArchitectures", "native"),
        ("StateDirectoryMode", "0700"),
    ],
)
def test_it_is_hardened(unit, name, value):
    assert unit[name] == [value]


def test_it_is_bounded(unit):
    assert {"MemoryMax", "TasksMax"} <= unit.keys()


@pytest.mark.parametrize(
    "name",
    ["RestrictNamespaces", "ProtectKernelTunables", "ProtectKernelLogs", "ProtectControlGroups", "ProtectProc", "ProcSubset"],
)  # fmt: skip
def test_the_wall_can_be_put_up(unit, name):
    """With one of these the kernel lets no container have namespaces, or a /proc of its own."""
    assert name not in unit


def test_system_calls_are_refused_by_name_and_none_that_the_wall_makes(unit):
    (value,) = unit["SystemCallFilter"]
    assert value.startswith("~")
    refused = value[1:].split()
    assert set(GROUPS) <= set(refused)
    assert not {"@mount", "@privileged", "@process", "@sandbox", "@default"}.intersection(refused)


def test_sockets_are_of_the_families_that_pods_have(unit):
    (value,) = unit["RestrictAddressFamilies"]
    numbers = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
    assert {numbers[name] for name in value.split()} == set(seccomp.FAMILIES)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_knows_every_setting_and_calls_it_no_more_than_medium():
    said = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", str(UNIT)],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    # systemd before 254 does not know it and ignores it, as the unit says.
    others = re.sub(r".*Unknown key\b.*DelegateSubgroup.*", "", said.stderr)
    assert "Unknown" not in others
    level = float(re.search(r"exposure level for \S+: ([\d.]+)", said.stdout)[1])
    assert level < 5
