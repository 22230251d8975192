"""What is kept of a cycle's decisions: each once, in words with numbers, and nothing while nothing new is decided."""

from __future__ import annotations

from scheduler.writes import groups_of

from .world import Story, World, configuration, group, pod


class Kept(World):
    """A world that notes what is kept of each cycle."""

    def __init__(self, *objects):
        super().__init__(*objects)
        self.kept = []

    def cycle(self, seconds=0):
        decisions = super().cycle(seconds)
        self.kept = [each for some in groups_of(decisions, self.now) for each in some.decisions]
        assert all(each.at == self.now for each in self.kept)
        return decisions


class Decisions(Story):
    """A story of which it is told what is kept."""

    def __init__(self):
        super().__init__()
        self.world = Kept()

    def tell(self, line):
        super().tell(line)
        for each in self.world.kept:
            where = " ".join(f"{node}={pods}" for node, pods in each.nodes)
            other = f" for {each.other}" if each.other else ""
            yield f"{each.kind} {each.name}{other} in {each.queue}: {each.reason}, {each.pods} pods {where}: {each.message}"


def test_what_is_kept_step_by_step(golden):
    golden("decisions", lambda: Decisions().tell, by_line=True)


TDM = "actions: enqueue, allocate\ntiers: [{plugins: [{name: tdm, arguments: {tdm.revocable-zone.z: '10:00-11:00'}}]}]"


def test_pods_on_nodes_whose_time_is_over_are_told_without_somebody_who_gets_the_room():
    kind, one = pod("g-0", phase="Running", node="lent")
    one["metadata"]["annotations"]["volcano.sh/revocable-zone"] = "*"
    lent = "node lent volcano.sh/revocable-zone=z; queue default"
    world = Kept(lent, configuration(TDM), group(phase="Running"), (kind, one))
    world.cycle()
    (gone,) = world.kept
    assert (gone.kind, gone.reason, gone.other, gone.queue) == ("evict", "RevocableZoneClosed", "", "default")
    assert gone.message == "g-0 was asked to end, because of tdm: the revocable zone is closed now."
