"""What people want is drawn in the same way again, can all be drawn, and is what the API takes."""

import re
from collections import Counter
from random import Random

import msgspec
import pytest

from proof.simulation import command
from proof.simulation.people.client import KINDS, Client, Request

ACCEPTED_SHARE = 0.97
REFUSED_SHARE = 0.99
SUBMITTED_SHARE = (0.5, 0.6)


class Snapshot:
    """A picture of objects that somebody has collected."""

    def __init__(self, objects=None, now=0):
        self.found = objects or {}
        self.now = now

    def objects(self, resource):
        return self.found.get(resource, {})


def wishes_of(seed, count, picture):
    client = Client(Random(seed))
    return [client.wish(picture) for _ in range(count)]


def some_jobs(count, phase="Running"):
    """Return jobs as a watch shows them."""
    return {
        ("default", f"j{number}"): {
            "metadata": {"name": f"j{number}", "namespace": "default", "uid": f"u{number}"},
            "spec": {"tasks": [{"name": "main", "replicas": 2}], "minAvailable": 2},
            "status": {"state": {"phase": phase}},
        }
        for number in range(count)
    }


def test_the_same_seed_and_pictures_give_the_same_wishes():
    picture = Snapshot({"jobs.batch.volcano.sh": some_jobs(5)})
    assert wishes_of(7, 200, picture) == wishes_of(7, 200, picture)
    assert wishes_of(7, 200, picture) != wishes_of(8, 200, picture)


def test_the_order_in_which_a_watch_showed_objects_does_not_matter():
    jobs = some_jobs(5)
    turned = dict(reversed(jobs.items()))
    picture, other = (Snapshot({"jobs.batch.volcano.sh": each}) for each in (jobs, turned))
    assert wishes_of(7, 100, picture) == wishes_of(7, 100, other)


def test_a_request_survives_being_written_down():
    for request in wishes_of(3, 200, Snapshot()):
        assert msgspec.json.decode(msgspec.json.encode(request), type=Request) == request


def test_about_half_of_all_wishes_bring_work():
    weights = Counter()
    for kind in KINDS.values():
        weights[kind.submits] += kind.weight
    assert SUBMITTED_SHARE[0] < weights[True] / weights.total() < SUBMITTED_SHARE[1]


def test_too_many_jobs_make_people_delete():
    def deletions(count):
        picture = Snapshot({"jobs.batch.volcano.sh": some_jobs(count)})
        return sum(each.method == "DELETE" for each in wishes_of(1, 100, picture))

    assert deletions(300) > 2 * deletions(20)


def test_a_weight_of_nothing_means_never_and_a_wrong_name_is_told():
    client = Client(Random(1), dict.fromkeys(KINDS, 0) | {"submit gang": 1})
    assert {client.draw(Snapshot())[0] for _ in range(20)} == {"submit gang"}
    with pytest.raises(ValueError, match="no wish called 'dance'"):
        Client(Random(1), {"dance": 1})


@pytest.mark.timeout(300)
def test_the_api_takes_what_people_want():
    """In a world, which is the same each time: the real API, consumers and nodes."""
    done = command.run("proof.simulation.reception", "--wishes", 30)
    assert done.returncode == 0, done.stdout + done.stderr
    shares = {meant: float(share) for meant, share in re.findall(r"share (\w+): ([\d.]+)", done.stdout)}
    assert shares["accepted"] >= ACCEPTED_SHARE, done.stdout
    assert shares["refused"] >= REFUSED_SHARE, done.stdout
