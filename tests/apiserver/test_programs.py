"""A client hears which programs this machine lacks for the plugins of its job, and no more of it once they are installed."""

from __future__ import annotations

from tests.jobs.builders import container, job, task

JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"


def ray(name):
    head, worker = ({"containers": [container(each)]} for each in ("head", "worker"))
    return job(task("head", pod=head), task("worker", pod=worker), name=name, plugins={"ray": []})


def about_programs(answer):
    """Return the warnings about what nodes lack; others tell what the plugin overwrites."""
    return [each for each in answer.headers.get_list("warning") if "has no ray" in each]


def test_a_program_that_this_machine_lacks_is_a_warning_until_it_is_installed(node, api, monkeypatch):
    monkeypatch.setattr("node.agent.readings.SYSTEM_FOLDERS", [])
    monkeypatch.setenv("PATH", str(node.out))
    node.begin()
    for answer in (api.post(f"{JOBS}?dryRun=All", ray("a")), api.post(JOBS, ray("b"))):
        assert answer.status_code == 201, answer.text
        (warning,) = about_programs(answer)
        assert "spec.plugins[ray]: node here has no ray, " in warning
        assert "install the Python package ray[default] there." in warning
    (node.out / "ray").touch(0o755)
    node.agent.machine.due = 0
    node.agent.machine.beat()
    assert about_programs(api.post(JOBS, ray("c"))) == []
