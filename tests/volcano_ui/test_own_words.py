"""Nothing of ours parses our own English: what one part has to say to another travels as data beside the sentence."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("dashboard", "jobs", "queues", "scheduler")
READS = {  # module → whose text it takes apart
    "dashboard/parts/drafts.py": "names that browsers send",
    "jobs/crons/schedule.py": "schedules that people write",
    "jobs/lifecycle/causes.py": "what containers and nodes say at length, which is cut at a clause",
    "jobs/lifecycle/image_waits.py": "errors of registries and container engines",
    "jobs/logs/pens.py": "colours in what programs print",
    "jobs/logs/text.py": "what programs print",
    "jobs/pages/editor/editor.py": "the path of a field that leads a warning, as in Kubernetes",
    "jobs/plugins/arguments.py": "arguments that people write",
    "jobs/rules/job_text.py": "YAML that people write",
    "jobs/rules/program_warnings.py": "commands that people write",
    "jobs/rules/yaml_write.py": "names and texts that people write",
    "jobs/sweeps/draft.py": "tokens that browsers send",
    "jobs/sweeps/placeholders.py": "placeholders that people write",
    "scheduler/policy/zones.py": "times that people write",
}


def test_modules_that_take_texts_apart_are_few_and_none_reads_what_we_say():
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    lines = ((path, line.split()[:2]) for path in paths for line in path.read_text().splitlines())
    found = {str(path.relative_to(ROOT)) for path, words in lines if words in (["import", "re"], ["from", "re"])}
    assert found == READS.keys(), "say whose text it is, and if it is ours send data instead"
