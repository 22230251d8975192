"""Jobs that people write, by where they stand: in the design, among samples and templates, in the golden files."""

import yaml

from jobs.pages.editor.samples import SAMPLES
from jobs.parameterized.builtin import BUILTINS
from jobs.parameterized.parameters import fill
from jobs.rules import job_text
from proof.systems import seed
from proof.systems.system import PROJECT

DESIGN = ("TEMPLATES", "TF_JOB", "SPARK_JOB", "GANG", "PRIORITY", "PLUGINS")
GOLDEN = PROJECT / "tests" / "golden" / "jobs"


def jobs():
    """Return the jobs with what `kubectl create` wants: a name."""
    found = {f"design-{name.lower().replace('_', '-')}": job_text.read(getattr(seed, name)).object for name in DESIGN}
    found |= {f"sample-{each.slug}": job_text.read(each.yaml).object for each in SAMPLES.values()}
    found |= {
        f"template-{each.slug}": fill(each.template, each.parameters, each.defaults) for each in BUILTINS.values()
    }
    for file in sorted(GOLDEN.glob("*.in.yaml")):
        documents = [each for each in yaml.safe_load_all(file.read_text()) if each["kind"] == "Job"]
        # The form mends spellings of old that no API server knows.
        found |= {f"golden-{file.name.partition('.')[0]}": read(each) for each in documents}
    return {name: {**job, "metadata": {**job["metadata"], "name": name}} for name, job in found.items()}


def read(job):
    """Return a job as the form understands it."""
    return job_text.read(yaml.safe_dump(job)).object
