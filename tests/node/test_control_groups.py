"""Control groups: the rules everywhere, what the kernel does where there may be groups (`make cgroups`)."""

import contextlib
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from kube.kinds.core import Pod
from node.containers import control_groups
from node.containers.control_groups import ControlGroups, Groups, GroupState, Unavailable
from node.paths import Layout
from node.shim import control_group, linux, tree
from node.shim.order import Group, Order
from proof.harness.waiting import until
from tests import builders
from tests.node.driving import behind_all, executing
from tests.tables import cases

MIB = 1 << 20
V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "31 24 0:27 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory"


def unavailable(words):
    return pytest.raises(Unavailable, match=words) if words else contextlib.nullcontext()


class TestWhere:
    @cases("mounts, groups, found", {
        "a service": ([V2], "0::/a.slice/b.service", "/sys/fs/cgroup/a.slice/b.service"),
        "the hierarchy's own": ([V2], "0::/", "/sys/fs/cgroup"),
        "both versions": ([V1, V2.replace("group ", "group/both ")], "5:memory:/x\n0::/y", "/sys/fs/cgroup/both/y"),
        "a part is mounted": ([V2.replace(" / ", " /a ")], "0::/a/b", "/sys/fs/cgroup/b"),
        "version 1": ([V1], "5:memory:/x", ""),
        "nothing mounted": ([], "0::/", ""),
        "another part is mounted": ([V2.replace(" / ", " /ab ")], "0::/a/b", ""),
        "a part above its namespace": ([V2.replace(" / ", " /../.. ")], "0::/", ""),
    })  # fmt: skip
    def test_group_of_a_process_has_a_directory_that_may_be_out_of_sight(self, mounts, groups, found):
        with unavailable("" if found else "no control groups of version 2"):
            assert control_groups.directory("\n".join(mounts), groups)[0] == found

    @cases("seen, top, leaves, found, why", {
        "a unit with Delegate=": (GroupState("/u.service", True, 5, 0), "", False, "/u.service", ""),
        "with DelegateSubgroup=": (GroupState("/u.service", True, 0, 0), "", True, "/u.service", ""),
        "a unit of root's": (GroupState("/u.service", True, 5, 0), "/", False, "/u.service", ""),
        "a delegated scope": (GroupState("/u.scope", True, 5, 0), "", True, "/u.scope", ""),
        "root in a session": (GroupState("/s.scope", False, 5, 2), "/", True, "/", ""),
        "root alone in a scope": (GroupState("/s.scope", False, 5, 0), "/", True, "/", ""),
        "alone in a scope": (GroupState("/s.scope", False, 5, 0), "", True, "/s.scope", ""),
        "a session": (GroupState("/s.scope", False, 5, 2), "", False, "", "was not delegated"),
        "an old systemd": (GroupState("/u.service", True, 5, 0), "", True, "", "DelegateSubgroup=volcano-ui"),
    })  # fmt: skip
    def test_what_was_given_to_the_cluster_is_shared_out_and_nothing_else(self, seen, top, leaves, found, why):
        with unavailable(why):
            assert control_groups.shared_group(seen, top, leaves=leaves) == found


class TestNumbers:
    def test_weight_is_kubernetes_and_quota_is_exact(self):
        weights = {0: 1, 100: 4, 1000: 39, 4000: 157, 10**9: 10000}
        assert {each: control_groups.cpu_weight(each) for each in weights} == weights
        quotas = {0: 0, 1: 1000, 10: 1000, 500: 50_000, 1500: 150_000}
        assert {each: control_groups.cpu_quota_us(each) for each in quotas} == quotas

    def test_group_bounds_what_the_order_says_and_without_limits_kills_whole_containers_and_bounds_processes(self):
        group = Group("/pod/main-0", 20, 50_000, cpuset=True)
        order = Order("/d", ["true"], {}, "/", memory_bytes=100, cpus=1, group=group)
        assert Order.decode(order.encode()).group == group
        always = {"memory.oom.group": "1", "pids.max": "4096"}
        assert control_group.settings(group, order, [3]) == {
            **always, "memory.max": "100", "memory.swap.max": "0", "cpu.max": "50000 100000", "cpu.weight": "20",
            "cpuset.cpus": "3",
        }  # fmt: skip
        unbound = control_group.settings(Group("/pod/main-0", 1), Order("/d", ["true"], {}, "/"), [0, 1])
        assert unbound == {**always, "cpu.weight": "1"}

    @cases("events, limit, says", {
        "nothing": ("oom 0\noom_kill 0\noom_group_kill 0", 100, ""),
        "an allocation that was refused": ("oom 3\noom_kill 0", 100, ""),
        "its limit": ("oom 1\noom_kill 1\noom_group_kill 1", 100, "its limit, 100 bytes"),
        "the machine": ("oom 0\noom_kill 1", 100, "its own limit is 100 bytes"),
        "the machine, without a limit": ("oom 0\noom_kill 1", 0, "no limit of its own"),
        "a group that is gone": (None, 100, ""),
    })  # fmt: skip
    def test_kernel_says_why_it_killed(self, tmp_path, events, limit, says):
        if events:
            (tmp_path / "memory.events").write_text(f"low 0\nhigh 0\nmax 7\n{events}\n")
        problem = control_group.memory_problem(str(tmp_path), limit)
        assert (says in problem) if says else problem == ""


def test_where_nobody_can_be_born_in_a_group_he_has_yet_to_enter_it(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    pid, is_inside = control_group.fork(fd)
    if pid == 0:
        os._exit(7)
    os.close(fd)
    assert not is_inside
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def exists(path):
    return Path(path).exists()


def pods_in(groups):
    return [each for each in Path(groups.home).iterdir() if each.is_dir()]


class Bound:
    def __init__(self, attempts, layout, groups):
        self.attempts, self.layout, self.groups = attempts, layout, groups
        self.manager = ControlGroups(layout, groups)

    def order(self, uid="u", container=0, **resources):
        containers = (builders.container(name, **resources) for name in ("main", "beside"))
        made = msgspec.convert(builders.pod("p", *containers, namespace="d", uid=uid), Pod)
        each = made.spec.containers[container]
        directory = self.layout.attempt(uid, each.name, 0)
        directory.mkdir(parents=True)
        return directory, control_groups.order(self.groups, made, each, 0)

    def python(self, script, uid="u", container=0, limits=None, **fields):
        directory, group = self.order(uid, container, **({"limits": limits} if limits else {}))
        self.attempts.start(sys.executable, "-c", script, directory=directory, group=group, **fields)
        return directory

    def ran(self, script, **fields):
        directory = self.python(script, **fields)
        return self.attempts.end(directory), self.attempts.output(directory)

    def is_empty(self):
        self.manager.sweep(())
        return not pods_in(self.groups)

    def group(self, uid="u", name="main"):
        return f"{self.groups.home}/{uid}/{name}-0"


def groups_of(layout):
    found = control_groups.find(layout, leaves=False)
    if not found.home:
        pytest.skip(f"there are no control groups for pods here: {found.why}")
    return found


@pytest.fixture(params=["no wall", "every layer"])
def bound(request, attempts):
    layout = Layout(attempts.root)
    found = groups_of(layout)
    if request.param == "every layer":
        behind_all(attempts, attempts.spawner.probe(attempts.root / "probe"))
    running = Bound(attempts, layout, found)
    yield running
    attempts.close()
    until(running.is_empty)
    running.manager.close()
    assert not exists(found.home)


HOG = """
import os
fd = os.memfd_create("x")
for _ in range({mib}): os.write(fd, bytes(1 << 20))
print("done")
"""

HOGS = f"import os, time\nif os.fork(): time.sleep(1000)\n{HOG.format(mib=700)}"
SHARED = "with open('/dev/shm/x', 'wb') as file:\n for _ in range(700): file.write(bytes(1 << 20))"
SLEEP = "import time; time.sleep(1000)"


class TestMemory:
    @cases("script, fields, reason, output", {
        "files in memory count however fast they grow": (HOG.format(mib=700), {}, "OOMKilled", b""),
        "all of a container ends together": (HOGS, {}, "OOMKilled", b""),
        "shared memory counts": (SHARED, {"shared_memory": 1 << 30}, "OOMKilled", b""),
        "below its limit it goes on": (HOG.format(mib=60), {}, "Completed", b"done\n"),
        "who is killed by somebody else": ("import os; os.kill(os.getpid(), 9)", {}, "Error", b""),
    })  # fmt: skip
    def test_what_counts(self, bound, script, fields, reason, output):
        if "shared_memory" in fields and bound.attempts.layers.get("mounts", "none") == "none":
            pytest.skip("here it is the machine's")
        status, printed = bound.ran(script, memory_bytes=100 * MIB, **fields)
        assert (status["reason"], printed, exists(bound.group())) == (reason, output, False)
        if reason == "OOMKilled":
            assert (status["exitCode"], status["signal"]) == (137, 9)
            assert f"its limit, {100 * MIB} bytes" in status["message"]

    def test_commands_of_exec_count(self, bound):
        directory = bound.python(SLEEP, memory_bytes=100 * MIB)
        hog = [sys.executable, "-c", HOG.format(mib=700)]
        with Path(os.devnull).open("w") as null, executing(directory, *hog, descriptors=[null.fileno()], key=""):
            assert bound.attempts.end(directory)["reason"] == "OOMKilled"

    def test_containers_of_a_pod_have_limits_of_their_own(self, bound):
        small = bound.python(SLEEP, memory_bytes=50 * MIB)
        large = bound.python(HOG.format(mib=150), container=1, memory_bytes=300 * MIB)
        assert bound.attempts.end(large)["reason"] == "Completed"
        assert exists(bound.group())
        assert not exists(bound.group(name="beside"))
        bound.attempts.stop(small, grace=0)
        assert bound.attempts.end(small)["exitCode"] in (137, 143)


BOMB = """
import os, time
made = 0
while True:
    try:
        pid = os.fork()
    except BlockingIOError:
        break
    if not pid:
        time.sleep(1000)
    made += 1
print(made)
"""
HALF = """
import os, time
spent, begun = time.process_time(), time.monotonic()
pid = os.fork()
while time.monotonic() < begun + 5: pass
if pid:
    used = os.wait4(pid, 0)[2]
    print((time.process_time() - spent + used.ru_utime + used.ru_stime) / (time.monotonic() - begun))
"""


class TestProcesses:
    def test_forks_beyond_the_limit_are_refused_and_the_container_goes_on(self, bound):
        status, output = bound.ran(BOMB, processes=50)
        assert (status["reason"], output) == ("Completed", b"49\n")

    def test_who_forks_for_ever_is_ended(self, bound):
        directory = bound.python("import os\nwhile True:\n try: os.fork()\n except OSError: pass", processes=200)
        until(lambda: int(linux.content(f"{bound.group()}/pids.current")) == 200)
        bound.attempts.stop(directory, grace=0)
        assert bound.attempts.end(directory)["exitCode"] in (137, 143)
        assert not exists(bound.group())

    def test_half_a_processor_is_half_a_processor(self, bound):
        status, output = bound.ran(HALF, limits={"cpu": "500m"})
        assert status["reason"] == "Completed"
        assert float(output) <= 0.55

    def test_processors_that_it_was_not_given_are_refused(self, bound):
        every = sorted(os.sched_getaffinity(0))
        if "cpuset" not in bound.groups.controllers or len(every) < 2:
            pytest.skip("it takes the controller cpuset, and two processors")
        script = (
            f"import os; own = os.sched_getaffinity(0); other = set({every}) - own; print(len(own))\n"
            "try: os.sched_setaffinity(0, other)\nexcept OSError as error: print(error.errno)\n"
            f"os.sched_setaffinity(0, {every}); print(os.sched_getaffinity(0) == own)"
        )
        assert bound.ran(script, cpus=1, limits={"cpu": "1"})[1] == b"1\n22\nTrue\n"

    def test_command_is_inside_and_its_shim_and_init_are_not(self, bound):
        directory = bound.python(SLEEP)
        main = bound.attempts.started(directory)["pid"]
        assert linux.content(f"{bound.group()}/cgroup.procs").split() == [str(main).encode()]
        assert main in tree.children(bound.attempts.shim(directory))

    def test_it_cannot_leave_or_change_its_limits(self, bound):
        if bound.attempts.layers.get("mounts", "none") == "none":
            pytest.skip("without a wall it can, as the user may who runs the cluster")
        script = (
            f"import os\nfor path in ('{bound.group()}', '{bound.groups.home}', '/sys/fs/cgroup'):\n"
            " for name in ('cgroup.procs', 'memory.max'):\n"
            "  try: open(f'{path}/{name}', 'w').write('0'); print('left')\n  except OSError: pass"
        )
        status, output = bound.ran(script)
        assert (status["reason"], output) == ("Completed", b"")


class TestWhatIsLeft:
    def kill(self, bound, directory):
        bound.attempts.kill_shim(directory)
        bound.attempts.until_gone(bound.attempts.shim(directory))

    def test_of_a_shim_that_was_killed_nothing_is(self, bound):
        script = "import os, time\nif not os.fork(): os.setsid(); os.environ.clear()\ntime.sleep(1000)"
        self.kill(bound, bound.python(script))
        assert bound.manager.end("u", "main", 0)
        assert not exists(bound.group())

    def test_next_agent_sweeps_what_nobody_watches_over_also_in_homes_of_earlier_starts(self, bound):
        killed, lives, earlier = (bound.python(SLEEP, uid=uid) for uid in ("killed", "lives", "earlier"))
        self.kill(bound, killed)
        again = ControlGroups(bound.layout, bound.groups)
        assert (exists(f"{bound.groups.home}/killed"), exists(bound.group("lives"))) == (False, True)
        again.forget("lives")
        assert exists(bound.group("lives")), "something of it runs"
        self.kill(bound, earlier)
        ControlGroups(bound.layout, Groups(why="another place"))
        assert not exists(bound.group("earlier"))
        os.kill(bound.attempts.shim(lives), signal.SIGKILL)

    @cases("argv, weight, words", {"the command": ("nosuch", 1, "nosuch"), "its group": ("true", 0, "cpu.weight")})
    def test_of_what_cannot_start_nothing_is(self, bound, argv, weight, words):
        directory, group = bound.order()
        bound.attempts.start(argv, directory=directory, group=group._replace(cpu_weight=weight))
        status = bound.attempts.end(directory)
        assert (status["reason"], words in status["message"], exists(bound.group())) == ("StartError", True, False)


class TestNode:
    @pytest.fixture
    def bounding(self, machine):
        found = groups_of(Layout(machine.data))
        yield machine.begin(machine.allowed().mounts)
        machine.crash()
        assert not exists(found.home)

    @pytest.mark.parametrize("killed", [False, True])
    def test_pod_goes_on_while_agents_come_and_go_and_leaves_no_group(self, bounding, killed):
        uid = bounding.held("exit 3", until="Running")
        bounding.again()
        group = Path(bounding.agent.context.groups.home) / uid
        assert exists(group / "main-0")
        if killed:
            os.kill(bounding.shims()[0], signal.SIGKILL)
        bounding.let_go()
        bounding.until_phase("Failed")
        bounding.until(lambda: not exists(group))
