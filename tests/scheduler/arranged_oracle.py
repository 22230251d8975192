"""A slow placer of arranged gangs: every HyperNode is tried with pod after pod on a copy of the cluster, and nothing is ruled out beforehand."""

import copy

from tests.scheduler.oracle import _best


class Slow:
    """One gang on a cluster; hyper_nodes are (tier, name, tier name, nodes)."""

    def __init__(self, cluster, gang, hyper_nodes, names, pods):
        self.cluster, self.gang, self.pods = cluster, gang, pods
        self.hyper_nodes = sorted(hyper_nodes, key=lambda each: each[:2])
        self.names = names
        self.nodes = [[] for _ in gang.bins]
        self.started = {n for n, part in enumerate(gang.parts) if part.need <= 0}

    def run(self):
        """Return the nodes of each bin, None where the minimum found no place."""
        if (self.gang.steps or self.gang.part_steps) and not self.first(
            self.everywhere(self.gang.topology, None, range(len(self.nodes))), self.minimum
        ):
            return None
        for some in range(len(self.nodes)):
            while len(self.nodes[some]) < self.gang.bins[some].count and self.more(some):
                pass
        return self.nodes

    # Trying

    def first(self, places, attempt):
        """Try one place after the other, each from where things stand; keep the first that works."""
        for domain in places:
            before = copy.deepcopy((self.cluster.free, self.nodes, self.started))
            if attempt(domain):
                return True
            self.cluster.free[:], self.nodes, self.started = before
        return False

    def minimum(self, root):
        for step in self.gang.part_steps:
            for number in step.parts:
                if sum(each in self.started for each in step.parts) < step.need and number not in self.started:
                    self.start(number, root)
            if sum(each in self.started for each in step.parts) < step.need:
                return False
        return all(self.fill_step(step, root) for step in self.gang.steps)

    def fill_step(self, step, root):
        def is_short():
            return sum(len(self.nodes[some]) for some in step.bins) < step.need

        for some in step.bins:
            number = self.part_of(some)
            if is_short() and (number is None or number in self.started or self.start(number, root)):
                while is_short() and self.join(some, root, is_short):
                    pass
        return not is_short()

    def more(self, some):
        """Place the part that a bin belongs to, or as many pods of it as fit where the gang is; tell whether there were any."""
        number = self.part_of(some)
        roots = self.everywhere(self.gang.topology, None, range(len(self.nodes)))
        if number is not None and number not in self.started:
            return self.first(roots, lambda root: self.start(number, root))
        return self.first(roots, lambda root: self.join_all(some, root))

    def join_all(self, some, root):
        before = len(self.nodes[some])
        while self.join(some, root, lambda: True):
            pass
        return len(self.nodes[some]) > before

    def part_of(self, some):
        return next((n for n, part in enumerate(self.gang.parts) if some in part.bins), None)

    def start(self, number, root):
        part = self.gang.parts[number]

        def whole(domain):
            left = part.need
            for some in part.bins:
                while left and self.put(some, domain):
                    left -= 1
            return not left

        if self.first(self.everywhere(part.topology, root, part.bins), whole):
            self.started.add(number)
            return True
        return False

    def join(self, some, root, is_short):
        """Place pods in the first place where there is room for any, until it is full or nobody is short; tell whether there were any."""
        number = self.part_of(some)
        part = None if number is None else self.gang.parts[number]
        places = [root] if part is None else self.everywhere(part.topology, root, part.bins)

        def fill(domain):
            before = len(self.nodes[some])
            while is_short() and self.put(some, domain):
                pass
            return len(self.nodes[some]) > before

        return self.first(places, fill)

    def put(self, some, domain):
        """Place one pod on the best node of a place."""
        if len(self.nodes[some]) == self.gang.bins[some].count:
            return False
        each = self.cluster.classes[self.gang.bins[some].pod_class]
        among = [n for n in range(len(self.names)) if domain is None or n in domain]
        node = _best(self.cluster, each, self.pods, None, among, None)
        if node < 0:
            return False
        self.cluster.free[node] -= each.request
        self.nodes[some].append(node)
        return True

    # Places, best first

    def everywhere(self, topology, root, bins):
        if topology is None:
            return [root]
        highest = topology.highest
        if topology.name:
            tiers = [tier for tier, _, tier_name, _ in self.hyper_nodes if tier_name == topology.name]
            highest = max(tiers, default=-1)
        whole = max((tier for tier, *_ in self.hyper_nodes), default=0) + 1
        bound = topology.is_hard and highest is not None and highest < whole
        there = {self.names.index(name) for name in topology.on if name in self.names}
        there |= {node for some in bins for node in self.nodes[some]}
        found = [
            (tier, -self.score(nodes, bins), -self.mates(nodes), name, nodes)
            for tier, name, _, nodes in self.hyper_nodes
            if nodes and there <= nodes and (not bound or tier <= highest)
        ]
        places = [nodes if root is None else nodes & root for *_, nodes in sorted(found, key=lambda f: f[:4])]
        return places if bound else [*places, root]

    def score(self, nodes, bins):
        total = 0.0
        for column, weight in self.cluster.packed:
            whole = sum(int(self.cluster.allocatable[n, column]) for n in nodes)
            used = whole - sum(int(self.cluster.free[n, column]) for n in nodes)
            for some in bins:
                each = self.gang.bins[some]
                left = each.count - len(self.nodes[some])
                used += int(self.cluster.classes[each.pod_class].request[column]) * left
            total += weight * (used / whole if whole and used <= whole else 0.0)
        return total

    def mates(self, nodes):
        gang = self.gang
        topologies = [gang.topology] if gang.topology else [part.topology for part in gang.parts]
        there = [self.names.index(n) for each in topologies if each for n in each.on if n in self.names]
        there += [node for some in self.nodes for node in some]
        return sum(node in nodes for node in there)
