"""Reading `volcano-scheduler.conf`: the whole text becomes a policy, or none of it (reference/volcano-scheduler §4.1).

As in Volcano, an unknown action, or a shape that cannot be read, makes the whole text unusable; an unknown plugin
or argument is left out, and an argument that cannot be read gets its default. Volcano says that in its log; here
each is a finding. So is anything that Volcano knows and that has no effect here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

import yaml

from kube.yaml.problem import YamlError, from_parser
from kube.yaml.tree import Tree, child, trees
from scheduler.policy import supported
from scheduler.policy.actions import Action
from scheduler.policy.arguments import PACKED_HYPER_NODES, Arguments
from scheduler.policy.findings import MAX_FINDINGS, Finding, Severity, nearest, quoted
from scheduler.policy.node_plugins import node_groups_of, scoring_of, usage_of, wishes_of
from scheduler.policy.policy import DEFAULT, NodeGrouping, Packing, Policy, Taking, TaskTopologies, Usage
from scheduler.policy.rescheduling import Rescheduling, rescheduling_of
from scheduler.policy.strategy_fit import spared_amounts
from scheduler.policy.supported import FLAGS, HIERARCHY, OFF_BY_DEFAULT, PLUGINS, PluginSupport
from scheduler.policy.zones import Zones, zones_of
from scheduler.victims.evict import MAX_DOMAINS

LONGEST = 65_536  # characters of a configuration
SECTIONS = ("actions", "tiers", "configurations", "metrics")


class Reading(NamedTuple):
    """What a text says: the policy, None where the text cannot be used; the plugins that it lists; all findings by line."""

    policy: Policy | None
    plugins: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def errors(self) -> list[Finding]:
        """What makes it unusable."""
        return [finding for finding in self.findings if finding.severity is Severity.ERROR]

    @property
    def warnings(self) -> list[Finding]:
        """What may not do what its author expects."""
        return [finding for finding in self.findings if finding.severity is Severity.WARNING]


def read(text: str) -> Reading:
    """Read a configuration; no text makes this raise."""
    if len(text) > LONGEST:
        message = f"The configuration has {len(text):,} characters; at most {LONGEST:,} are read."
        return _unusable(Finding(Severity.ERROR, "", message))
    try:
        documents = list(islice(trees(text), 2))
    except YamlError as error:
        return _unusable(*(Finding(Severity.ERROR, p.field, p.message, p.line) for p in error.problems))
    except yaml.YAMLError as error:
        problem = from_parser(error, text)
        return _unusable(Finding(Severity.ERROR, "", problem.message, problem.line))
    except UnicodeError:
        return _unusable(Finding(Severity.ERROR, "", "The configuration holds half a character; remove it."))
    if not documents:
        return _unusable(Finding(Severity.ERROR, "", "The configuration is empty; it needs at least actions."))
    return _Reader(documents[0]).read(is_alone=len(documents) == 1)


def _unusable(*findings: Finding) -> Reading:
    return Reading(None, (), findings)


@dataclass(slots=True)
class _Reader:
    """Reads one document and notes what it finds."""

    tree: Tree
    findings: list[Finding] = field(default_factory=list)
    listed: dict[str, Arguments] = field(default_factory=dict)
    off: set[str] = field(default_factory=set)
    parts_off: set[tuple[str, str]] = field(default_factory=set)
    hierarchical: set[str] = field(default_factory=set)
    taking: dict[Action, Taking] = field(default_factory=dict)
    min_runtime_ms: int = DEFAULT.min_runtime_ms

    def read(self, *, is_alone: bool) -> Reading:
        """Return what the document says."""
        if not is_alone:
            self.error("", "The text has two documents; one is read. Remove what follows ---.")
        for problem in (*self.tree.problems, *self.tree.duplicates):
            self.note(Severity.ERROR, problem.field, problem.message, problem.line)
        value = self.tree.value
        if not isinstance(value, dict):
            self.error("", f"The configuration is a mapping with actions and tiers, not {_kind_of(value)}.")
            return self.answer(frozenset())
        for name in (each for each in value if each not in SECTIONS):
            self.warn(child("", name), f"There is no section {quoted(name)}.{nearest(name, SECTIONS)}")
        actions = self.actions(value.get("actions"))
        self.tiers(value.get("tiers"))
        self.configurations(value.get("configurations"))
        if value.get("metrics") is not None:
            self.warn("metrics", "metrics has no effect here: usage goes by what the agents of nodes measure.")
        return self.answer(actions)

    def answer(self, actions: frozenset[Action]) -> Reading:
        """Return the policy unless there is an error, with the findings by line."""
        waits, nodeorder = self.at_work("sla"), self.at_work("nodeorder")
        scoring = scoring_of(nodeorder, self.at_work("binpack"), self.at_work("resource-strategy-fit"))
        policy = Policy(
            actions,
            self.overcommit(),
            scoring,
            waits is not None,
            waits.wait("sla-waiting-time") if waits else None,
            budgets=self.at_work("pdb") is not None,
            cooldown=self.at_work("cdp") is not None,
            wishes=wishes_of(nodeorder),
            node_groups=self.node_groups(),
            usage=self.usage(),
            zones=self.zones(),
            tasks=self.task_topologies(),
            reserves_ms=self.reserves(),
            min_runtime_ms=self.min_runtime_ms,
            packed=self.packed(),
            rescheduling=self.rescheduling(actions, fills=scoring is None),
            preempt=self.taking.get(Action.PREEMPT, DEFAULT.preempt),
            spared=self.spared(),
            packing=self.packing(),
            reclaim=self.taking.get(Action.RECLAIM, DEFAULT.reclaim),
        )
        ordered = tuple(sorted(self.findings, key=lambda finding: finding.line))
        return Reading(None if self.is_unusable() else policy, tuple(self.listed), ordered)

    def is_unusable(self) -> bool:
        """Tell whether there is an error."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    # Actions

    def actions(self, value: Any) -> frozenset[Action]:
        """Return the actions that are named."""
        if not isinstance(value, str) or not value.strip():
            self.error("actions", 'actions has to name what a cycle does, such as "enqueue, allocate".')
            return frozenset()
        names = [name.strip() for name in value.split(",")]
        for name in names:
            self.action(name, names)
        found = [
            supported.SAME.get(name) or Action(name)
            for name in names
            if name in supported.ORDER or name in supported.SAME
        ]
        if Action.ALLOCATE not in found:
            self.warn("actions", "Without allocate no waiting pod gets a node.")
        if found != sorted(found, key=supported.ORDER.index):
            order = ", ".join(supported.ORDER)
            self.warn("actions", f"Here actions are taken in the order {order}, however they are written.")
        return frozenset(found)

    def action(self, name: str, names: list[str]) -> None:
        """Note the findings about one of the named actions."""
        if (same := supported.SAME.get(name)) and same in names:
            self.warn("actions", f"{name} has no effect here beside {same}, which has whole gangs go, too.")
        elif same:
            self.warn("actions", f"{name} is taken as {same}, which has single pods beyond a minimum go first.")
        elif name not in supported.ACTIONS:
            hint = nearest(name, supported.ACTIONS) or f" There are {', '.join(sorted(supported.ACTIONS))}."
            self.error("actions", f"There is no action {quoted(name) or 'without a name'}.{hint}")

    # Plugins

    def tiers(self, value: Any) -> None:
        """Take over all plugins."""
        for path, tier in self.items("tiers", value):
            plugins = list(self.items(child(path, "plugins"), tier.get("plugins")))
            names = [self.plugin(where, each) for where, each in plugins]
            is_hierarchical = any(
                each["name"] == "drf" and each.get("enableHierarchy") is True
                for name, (_, each) in zip(names, plugins, strict=True)
                if name
            )
            if is_hierarchical and "proportion" in names:
                self.error(path, "drf with enableHierarchy and proportion may not be in one tier; move one.")
        self.unlisted()

    def unlisted(self) -> None:
        """Warn of plugins that are at work although they are not listed."""
        absent = [
            name
            for name, plugin in PLUGINS.items()
            if plugin.support is PluginSupport.ALWAYS and name not in self.listed
        ]
        # A configuration with one of the two is complete.
        if {"proportion", "capacity"} & self.listed.keys():
            absent = [name for name in absent if name not in ("proportion", "capacity")]
        if absent:
            self.warn("tiers", f"At work here although not listed: {', '.join(absent)}.")

    def plugin(self, path: str, value: dict[str, Any]) -> str:
        """Take over one plugin; return its name, "" where it has none."""
        name = value.get("name")
        if not isinstance(name, str) or not name:
            self.error(path, "The plugin has no name; write it as name: gang.")
            return ""
        plugin = PLUGINS.get(name)
        if plugin is None:
            message = f"There is no plugin {quoted(name)}, so this is left out.{nearest(name, PLUGINS)}"
            self.warn(child(path, "name"), message)
            return name
        if name in self.listed:
            self.warn(child(path, "name"), f"{name} is listed before; what stands there counts.")
            return name
        arguments = value.get("arguments")
        if arguments is not None and not isinstance(arguments, dict):
            self.error(child(path, "arguments"), f"arguments is a mapping, not {_kind_of(arguments)}.")
        self.listed[name] = Arguments(
            arguments if isinstance(arguments, dict) else {}, child(path, "arguments"), self.warn
        )
        if plugin.support is PluginSupport.WITHOUT_EFFECT:
            self.warn(child(path, "name"), f"{name} has no effect here: {plugin.words}.")
        else:
            self.listed[name].check(plugin)
        self.flags(path, name, value)
        return name

    def flags(self, path: str, name: str, value: dict[str, Any]) -> None:
        """Take over the flags of a plugin."""
        plugin = PLUGINS[name]
        for flag in (each for each in value if each not in ("name", "arguments")):
            is_on, where = value[flag], child(path, flag)
            if flag not in FLAGS:
                self.warn(where, f"There is no flag {quoted(flag)}.{nearest(flag, FLAGS)}")
            elif not isinstance(is_on, bool):
                self.error(where, f"{flag} is true or false, not {quoted(is_on)}.")
            elif flag == plugin.switch and not is_on:
                self.off.add(name)
            elif flag in plugin.parts:
                self.parts_off |= set() if is_on else {(name, flag)}
            elif flag == HIERARCHY and plugin.heeds_hierarchy:
                self.hierarchical |= {name} if is_on else set()
            elif is_on == (flag in OFF_BY_DEFAULT) and plugin.support is not PluginSupport.WITHOUT_EFFECT:
                self.warn(where, f"{flag} has no effect here.")

    def at_work(self, name: str) -> Arguments | None:
        """Return the arguments of a plugin that can be switched; None where it is off or not listed."""
        return None if name in self.off else self.listed.get(name)

    def overcommit(self) -> int | None:
        """Return for how many thousandths of the cluster groups are admitted; None where overcommit is off."""
        arguments = self.at_work("overcommit")
        return None if arguments is None else arguments.thousandths("overcommit-factor", 1200)

    def reserves(self) -> int | None:
        """Return after how many ms a reservation is made for a group; None for never."""
        arguments = self.listed.get("gang")
        default = DEFAULT.reserves_ms or 0
        return default if arguments is None else arguments.wait_or_never("reservation-wait", default)

    def packed(self) -> tuple[tuple[str, int], ...]:
        """Return the resources by which HyperNodes are compared, with their weights."""
        network = self.at_work("network-topology-aware")
        return network.packed(PACKED_HYPER_NODES) if network else DEFAULT.packed

    def packing(self) -> Packing | None:
        """Return how ordinary pods fill HyperNodes; None where they do not."""
        network = self.at_work("network-topology-aware")
        if network is None or ("network-topology-aware", "enableNodeOrder") in self.parts_off:
            return None
        weight = network.weight("weight", 1)
        fading = network.part("hypernode.binpack.normal-pod.fading", 0.8)
        is_on = network.truth("hypernode.binpack.normal-pod.enable", default=True)
        return Packing(weight, fading) if is_on and weight else None

    def node_groups(self) -> NodeGrouping | None:
        """Return how queues use node groups; None where nodegroup is off."""
        arguments = self.at_work("nodegroup")
        inherits = "nodegroup" in self.hierarchical
        return None if arguments is None else node_groups_of(arguments, inherits=inherits)

    def usage(self) -> Usage | None:
        """Return how the load of nodes counts; None where usage is off."""
        arguments = self.at_work("usage")
        closes, weighs = (("usage", flag) not in self.parts_off for flag in ("enablePredicate", "enableNodeOrder"))
        return None if arguments is None else usage_of(arguments, closes=closes, weighs=weighs)

    def zones(self) -> Zones | None:
        """Return when nodes of revocable zones are lent out; None where tdm is off."""
        arguments = self.at_work("tdm")
        evicts = ("tdm", "enabledVictim") not in self.parts_off
        return None if arguments is None else zones_of(arguments, evicts=evicts)

    def rescheduling(self, actions: frozenset[Action], *, fills: bool) -> Rescheduling | None:
        """Return when running pods are moved; None unless both action and plugin are on. fills: the fullest node is chosen first."""
        arguments = self.at_work("rescheduling")
        if arguments is None:
            if Action.SHUFFLE in actions:
                self.warn("actions", "shuffle moves no pod without the plugin rescheduling.")
            return None
        found = rescheduling_of(arguments)
        if Action.SHUFFLE not in actions:
            message = "rescheduling moves no pod without the action shuffle."
            self.warn(arguments.path.rpartition(".")[0], message)
            return None
        if fills:
            message = (
                "Nodes are chosen the fullest first, so most pods would come back, and those stay. List nodeorder."
            )
            self.warn(arguments.path.rpartition(".")[0], message)
        return found

    def spared(self) -> tuple[tuple[str, str, int], ...]:
        """Return what is spared on nodes for idle devices, even where the plugin does not compare nodes."""
        arguments = self.listed.get("resource-strategy-fit")
        is_off = ("resource-strategy-fit", "enablePredicate") in self.parts_off
        return () if arguments is None or is_off else spared_amounts(arguments)

    def task_topologies(self) -> TaskTopologies | None:
        """Return the policy for task topologies; None where task-topology is not listed."""
        arguments = self.listed.get("task-topology")
        weighs, orders = (
            ("task-topology", flag) not in self.parts_off for flag in ("enableNodeOrder", "enableTaskOrder")
        )
        if arguments is None:
            return None
        return TaskTopologies(arguments.weight("task-topology.weight", 1) if weighs else 0, orders)

    # The rest

    def configurations(self, value: Any) -> None:
        """Take over the arguments of actions, and warn of those without effect."""
        for path, each in self.items("configurations", value):
            name = each.get("name")
            if not isinstance(name, str) or name not in supported.ACTIONS:
                hint = nearest(name, supported.ACTIONS) if isinstance(name, str) else ""
                self.warn(path, f"There is no action {quoted(name)}, so this is left out.{hint}")
            elif stated := Arguments(each, path, self.warn).within("arguments").values:
                self.of_action(name, Arguments(stated, child(path, "arguments"), self.warn))

    def of_action(self, name: str, arguments: Arguments) -> None:
        """Take over the arguments of one action."""
        heeded = supported.arguments_of(name)
        for each in (each for each in arguments.values if each not in heeded):
            where, hint = child(arguments.path, each), nearest(each, supported.IDLE_ARGUMENTS | heeded)
            if each in supported.IDLE_ARGUMENTS or each in supported.ACTION_ARGUMENTS:
                self.warn(where, f"{each} of {name} has no effect here.")
            else:
                self.warn(where, f"There is no argument {quoted(each)}, so this is left out.{hint}")
        if supported.MIN_RUNTIME in heeded:
            self.min_runtime_ms = arguments.wait_or_zero(supported.MIN_RUNTIME, self.min_runtime_ms)
        if name in supported.SAME:
            domains = arguments.weight("maxDomains", MAX_DOMAINS) or MAX_DOMAINS
            self.taking[supported.SAME[name]] = Taking(domains, arguments.truth("allowWholeBundle", default=True))

    def items(self, path: str, value: Any) -> Iterable[tuple[str, dict[str, Any]]]:
        """Yield the mappings of a list with their paths; anything else in it is an error."""
        if value is not None and not isinstance(value, list):
            self.error(path, f"{path.rpartition('.')[2]} is a list, not {_kind_of(value)}.")
            return
        for number, each in enumerate(value or ()):
            if isinstance(each, dict):
                yield f"{path}[{number}]", each
            else:
                self.error(f"{path}[{number}]", f"This is a mapping, not {_kind_of(each)}.")

    def error(self, path: str, message: str) -> None:
        """Note what makes the configuration unusable."""
        self.note(Severity.ERROR, path, message)

    def warn(self, path: str, message: str) -> None:
        """Note what may not do what its author expects."""
        self.note(Severity.WARNING, path, message)

    def note(self, severity: Severity, path: str, message: str, line: int = 0) -> None:
        """Add a finding at the line of its path, or of the nearest parent that has one; beyond MAX_FINDINGS only a first error."""
        if len(self.findings) >= MAX_FINDINGS and (severity is Severity.WARNING or self.is_unusable()):
            return
        parent = path
        while parent and parent not in self.tree.positions:
            parent = parent[: max(parent.rfind("."), parent.rfind("["), 0)]
        self.findings.append(
            Finding(severity, path, message, line or (self.tree.positions[parent][0] if parent else 0))
        )


def _kind_of(value: Any) -> str:
    kinds = {dict: "a mapping", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    return kinds.get(type(value), "a number")
