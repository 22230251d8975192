"""What deploy/ gives: a systemd unit that is hardened and leaves the wall round pods, a Compose file, manifests."""

import re
import shutil
import subprocess

import pytest
import yaml
from django.conf import settings

from node.shim.isolation import seccomp

DEPLOY = settings.BASE_DIR / "deploy"
UNIT = DEPLOY / "volcano-ui.service"
HARDENED = """
    User=volcano-ui UMask=0077 NoNewPrivileges=yes CapabilityBoundingSet= ProtectSystem=strict ProtectHome=yes
    PrivateTmp=yes PrivateDevices=yes ProtectClock=yes ProtectKernelModules=yes ProtectHostname=yes RestrictSUIDSGID=yes
    RestrictRealtime=yes LockPersonality=yes SystemCallArchitectures=native StateDirectoryMode=0700
"""
# With one of these the kernel lets no container have namespaces, or a /proc of its own.
AGAINST_THE_WALL = """
    RestrictNamespaces ProtectKernelTunables ProtectKernelLogs ProtectControlGroups ProtectProc ProcSubset
"""
GROUPS = {"@clock", "@module", "@raw-io", "@reboot", "@swap"}  # of system calls that neither pods nor the cluster need
OF_THE_WALL = {"@mount", "@privileged", "@process", "@sandbox", "@default"}
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}
SERVICES = ("volcano-ui", "postgres", "valkey")


def test_the_unit_is_hardened_and_bounded_and_the_wall_can_be_put_up():
    lines = [line for line in UNIT.read_text().splitlines() if "=" in line and not line.startswith(("#", "["))]
    names = [line.partition("=")[0] for line in lines]
    assert [each for each in HARDENED.split() if each not in lines or names.count(each.partition("=")[0]) > 1] == []
    assert {"MemoryMax", "TasksMax"} <= set(names)
    assert not set(AGAINST_THE_WALL.split()) & set(names)
    (refused,) = [line.removeprefix("SystemCallFilter=") for line in lines if line.startswith("SystemCallFilter=")]
    assert refused.startswith("~")
    assert set(refused[1:].split()) >= GROUPS
    assert not set(refused[1:].split()) & OF_THE_WALL
    (families,) = [line.partition("=")[2] for line in lines if line.startswith("RestrictAddressFamilies=")]
    assert {FAMILIES[name] for name in families.split()} == set(seccomp.FAMILIES)


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_knows_every_setting_and_calls_it_no_more_than_medium():
    command = ["systemd-analyze", "security", "--offline=yes", str(UNIT)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    # systemd before 254 does not know it and ignores it, as the unit says.
    others = re.sub(r".*Unknown key\b.*DelegateSubgroup.*", "", result.stderr)
    assert "Unknown" not in others
    level = float(re.search(r"exposure level for \S+: ([\d.]+)", result.stdout)[1])
    assert level < 5


def test_in_compose_the_cluster_has_no_power_over_its_container_and_pods_none_over_what_it_stores():
    text = (DEPLOY / "compose.yaml").read_text()
    compose = yaml.safe_load(text)
    cluster = compose["services"]["volcano-ui"]
    assert (cluster["read_only"], cluster["cap_drop"]) == (True, ["ALL"])
    assert "no-new-privileges:true" in cluster["security_opt"]
    assert {"mem_limit", "pids_limit"} <= cluster.keys()
    assert "privileged" not in cluster
    assert not [volume for volume in cluster["volumes"] if volume.startswith(("/", "."))]
    ports = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    passwords = re.findall(r"\$\{(\w*PASSWORD)(.*?)\}", text)
    assert set(passwords) == {("POSTGRES_PASSWORD", ":?choose one"), ("VALKEY_PASSWORD", ":?choose one")}
    assert compose["networks"]["stores"]["internal"] is True


def test_each_image_has_a_version_and_can_be_given_by_its_digest():
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    assert set(services) == set(SERVICES)
    named = [services["volcano-ui"]["build"]["args"]["BASE"], *(services[name]["image"] for name in SERVICES[1:])]
    found = [re.fullmatch(r"\$\{(\w+_IMAGE):-docker\.io/[\w/]+:([\w.-]+)\}", name) for name in named]
    assert all(found), named
    assert "latest" not in {each[2] for each in found}
    base = re.search(r"^ARG BASE=(\S+)$", (DEPLOY / "Containerfile").read_text(), re.MULTILINE)[1]
    assert named[0] == f"${{BASE_IMAGE:-{base}}}"


def test_in_kubernetes_people_are_acted_as_by_name():
    """A right to impersonate that names nobody is one to be system:masters."""
    roles = yaml.safe_load_all((DEPLOY / "kubernetes" / "base" / "roles.yaml").read_text())
    rules = [rule for role in roles for rule in role["rules"] if "impersonate" in rule["verbs"]]
    assert rules
    assert [rule for rule in rules if not rule.get("resourceNames")] == []


def test_no_manifest_deletes_several_objects():
    """Kustomize before 5.7, as in kubectl until 1.34, panics on a file with several `$patch: delete`."""
    for path in sorted((DEPLOY / "kubernetes").rglob("*.yaml")):
        text = path.read_text()
        documents = yaml.safe_load_all(text) if "$patch" in text else ()
        assert sum(isinstance(each, dict) and each.get("$patch") == "delete" for each in documents) <= 1, path
