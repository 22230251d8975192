"""kubectl with kinds that its user defined, against the API server."""

from __future__ import annotations

import json
import subprocess

import pytest
import yaml

from cluster import access
from proof.harness.kubectl import WAIT
from proof.harness.waiting import HANG_S
from tests.apiserver import client
from tests.kube.custom import samples


@pytest.fixture
def kubectl(kubectl_path, cluster, redis_url, settings, tmp_path):
    """A function that runs kubectl as somebody who may do everything."""
    settings.REDIS_URL = redis_url

    async def system(headers):
        return access.SYSTEM

    with client.serving(system) as url:

        def run(*arguments, given=None, fails=False):
            command = [kubectl_path, f"--server={url}", f"--cache-dir={tmp_path}/cache", *arguments]
            text = None if given is None else yaml.safe_dump_all(given)
            options = {"input": text, "capture_output": True, "text": True, "timeout": 2 * HANG_S}
            done = subprocess.run(command, env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}, **options)
            assert (done.returncode != 0) == fails, done.stderr + done.stdout
            return done.stderr if fails else done.stdout

        yield run


def lines(text):
    return [line.split() for line in text.splitlines()]


def test_person_defines_a_kind_and_works_with_it(kubectl):
    kubectl("apply", "-f", "-", given=[samples.CRON_TAB])
    kubectl("wait", "--for=condition=Established", "crd/crontabs.stable.example.com", WAIT)
    kubectl("apply", "-f", "-", given=[samples.cron_tab("one"), samples.cron_tab("two", replicas=3)])
    head, *rows = lines(kubectl("get", "ct"))
    assert head == ["NAME", "SPEC", "REPLICAS", "AGE"]
    assert [(row[0], row[6]) for row in rows] == [("one", "1"), ("two", "3")]

    refusal = kubectl("apply", "-f", "-", given=[samples.cron_tab("bad", replicas="x")], fails=True)
    assert 'spec.replicas in body must be of type integer: "string"' in refusal
    refusal = kubectl("apply", "-f", "-", given=[samples.cron_tab("bad", hue="green")], fails=True)
    assert 'strict decoding error: unknown field "spec.hue"' in refusal

    kubectl("scale", "crontab/one", "--replicas=4")
    found = json.loads(kubectl("get", "crontab", "one", "-o", "json"))
    assert (found["spec"]["replicas"], found["metadata"]["generation"]) == (4, 2)
    kubectl("patch", "ct", "one", "--type=merge", "-p", '{"spec": {"image": "mine"}}')
    kubectl("label", "ct", "one", "colour=red")
    assert lines(kubectl("get", "ct", "--field-selector", "spec.image=mine", "--no-headers"))[0][0] == "one"
    assert "crontabs" in kubectl("api-resources", "--api-group=stable.example.com")
    assert "cronSpec" in kubectl("explain", "crontab.spec")

    kubectl("delete", "ct", "two")
    assert [row[0] for row in lines(kubectl("get", "ct", "--no-headers"))] == ["one"]


def test_flows_can_be_installed_as_custom_kinds(kubectl):
    kubectl("apply", "-f", "-", given=[samples.TASK_FLOW, samples.TASK_TEMPLATE])
    head = {"apiVersion": "flow.example.com/v1alpha1", "kind": "TaskFlow", "metadata": {"name": "nightly"}}
    spec = {"flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]}
    kubectl("create", "-f", "-", given=[{**head, "spec": spec}])
    status = '{"status": {"state": {"phase": "Running"}}}'
    kubectl("patch", "tf", "nightly", "--subresource=status", "--type=merge", "-p", status)
    assert lines(kubectl("get", "taskflows"))[1][:2] == ["nightly", "Running"]


def test_managers_share_the_items_of_a_list_that_is_a_map(kubectl):
    kubectl("apply", "-f", "-", given=[samples.CERTIFICATE])
    head = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "c"}}
    spec = {"secretName": "s", "issuerRef": {"name": "ca"}}
    kubectl("apply", "--server-side", "-f", "-", given=[{**head, "spec": spec}])
    for manager, kind in (("one", "Ready"), ("two", "Issuing")):
        status = {"conditions": [{"type": kind, "status": "True"}]}
        apply = ("apply", "--server-side", "--subresource=status", f"--field-manager={manager}", "-f", "-")
        kubectl(*apply, given=[{**head, "status": status}])
    assert lines(kubectl("get", "certificates"))[1][:3] == ["c", "True", "s"]
    found = json.loads(kubectl("get", "cert", "c", "-o", "json", "--show-managed-fields"))
    assert [one["type"] for one in found["status"]["conditions"]] == ["Ready", "Issuing"]
    other = {**head, "spec": {**spec, "secretName": "t"}}
    refusal = kubectl("apply", "--server-side", "--field-manager=other", "-f", "-", given=[other], fails=True)
    assert 'conflict with "kubectl": .spec.secretName' in refusal
