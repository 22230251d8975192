"""deploy/compose.yaml: what it takes from the container of the cluster, and what it keeps from pods."""

from __future__ import annotations

import re

import pytest
import yaml
from django.conf import settings

FOLDER = settings.BASE_DIR / "deploy"
SERVICES = ("volcano-ui", "postgres", "valkey")


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((FOLDER / "compose.yaml").read_text())


def test_the_cluster_has_no_power_over_its_container(compose):
    cluster = compose["services"]["volcano-ui"]
    assert cluster["read_only"] is True
    assert cluster["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in cluster["security_opt"]
    assert {"mem_limit", "pids_limit"} <= cluster.keys()
    assert "privileged" not in cluster
    assert not [volume for volume in cluster["volumes"] if volume.startswith(("/", "."))]


def test_ports_are_open_to_the_machine_itself_only(compose):
    ports = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_what_pods_must_not_reach_has_a_password_that_nobody_else_chose(compose):
    text = (FOLDER / "compose.yaml").read_text()
    passwords = re.findall(r"\$\{(\w*PASSWORD)(.*?)\}", text)
    assert {name for name, _ in passwords} == {"POSTGRES_PASSWORD", "VALKEY_PASSWORD"}
    assert {rest for _, rest in passwords} == {":?choose one"}
    assert compose["networks"]["stores"]["internal"] is True


def test_each_image_has_a_version_and_can_be_given_by_its_digest(compose):
    services = compose["services"]
    assert set(services) == set(SERVICES)
    named = [services["volcano-ui"]["build"]["args"]["BASE"], *(services[name]["image"] for name in SERVICES[1:])]
    found = [re.fullmatch(r"\$\{(\w+_IMAGE):-docker\.io/[\w/]+:([\w.-]+)\}", name) for name in named]
    assert all(found), named
    assert "latest" not in {each[2] for each in found}
    base = re.search(r"^ARG BASE=(\S+)$", (FOLDER / "Containerfile").read_text(), re.MULTILINE)[1]
    assert named[0] == f"${{BASE_IMAGE:-{base}}}"


def test_in_kubernetes_people_are_acted_as_by_name():
    """A right to impersonate that names nobody is one to be system:masters."""
    roles = yaml.safe_load_all((FOLDER / "kubernetes" / "base" / "roles.yaml").read_text())
    rules = [rule for role in roles for rule in role["rules"] if "impersonate" in rule["verbs"]]
    assert rules
    assert [rule for rule in rules if not rule.get("resourceNames")] == []
