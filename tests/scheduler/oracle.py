"""A slow placer: one pod at a time, everything looked up anew each time. The engine must give the same answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from scheduler.engine.filler import STARTS
from scheduler.engine.ranking import AVOIDANCE
from scheduler.engine.relations import Apart, Together
from scheduler.engine.turns import GANG_GRAIN, QUEUE_GRAIN


@dataclass
class Ledger:
    """What queues use, from the accounts of the engine as they are before anything is placed."""

    used: dict = field(default_factory=dict)

    @classmethod
    def of(cls, accounts):
        return cls({account: list(account.used) for account in accounts})

    def held(self, account, column):
        below = [each for each in self.used if each.parent is account]
        own = self.used[account][column] - sum(self.used[each][column] for each in below)
        return own + sum(max(self.held(each, column), each.guarantee[column]) for each in below)

    def add(self, account, request, sign=1):
        for each in account.line:
            for column, amount in enumerate(request):
                self.used[each][column] += sign * int(amount)

    def admits(self, account, request):
        """Whether a pod breaks no ceiling, or only one that was broken before and holds as much as before."""
        before = {(each, c): self.held(each, c) for each in account.line for c in range(len(request))}
        self.add(account, request)
        fine = all(
            self.held(each, c) <= each.ceiling[c] or self.held(each, c) == before[each, c]
            for each in account.line
            for c in range(len(request))
        )
        self.add(account, request, -1)
        return fine

    def share(self, account):
        before, whole = self.measure(account)
        pairs = zip(self.used[account], whole, strict=True)
        return before + max((used / due for used, due in pairs if due), default=0.0)

    def measure(self, account):
        if any(account.deserved) or account.parent is None:
            return 0.0, account.deserved
        return 1.0, account.parent.deserved


def _score(cluster, node, some, pods):
    columns = [c for c, q in enumerate(some.request) if q > 0]
    weighed = [c for c in columns if c != pods] or columns
    total = 0.0
    for column in weighed:
        whole = max(int(cluster.allocatable[node, column]), 1)
        used = whole - int(cluster.free[node, column])
        total += float(used + int(some.request[column])) / float(whole)
    return total


def _weighed(cluster, node, some, weights):
    """Return the score of a node as Volcano's nodeorder and binpack give it (reference/volcano-scheduler §3.8, §3.9)."""
    whole = [int(each) for each in cluster.allocatable[node]]
    after = [size - int(free) + int(q) for size, free, q in zip(whole, cluster.free[node], some.request, strict=True)]
    packed = [(c, w) for c, w in weights.packed if some.request[c]]
    share = 0.0
    for c, w in packed:
        share += w * (after[c] / whole[c]) if whole[c] else 0.0
    total = sum(w for _, w in packed)
    packing = share / total * (100 * weights.binpack) if total else 0.0
    there = [c for c in weights.sized if whole[c]]
    # A node that shrank under its pods is full, not fuller than that.
    full = {c: min(after[c], whole[c]) for c in there}
    least = sum((whole[c] - full[c]) * 100 // whole[c] for c in there) // (len(there) or 1)
    most = sum(full[c] * 100 // whole[c] for c in there) // (len(there) or 1)
    looked_at = [*weights.sized, *(c for c in weights.rare if some.request[c])]
    balanced = 0
    if any(some.request[c] for c in looked_at):
        balanced = math.floor((1 - _deviation([after[c] / whole[c] for c in looked_at if whole[c]])) * 100)
    score = packing + (weights.least * least + weights.most * most + weights.balanced * balanced)
    score = score + _fitting(whole, after, some, weights) if weights.fit else score
    if weights.spare and weights.all_scarce:
        has = sum(weight for c, weight in weights.scarce if whole[c] > 0)
        score += (1.0 - has / weights.all_scarce) * (100 * weights.spare)
    return score


def _fitting(whole, after, some, weights):
    """Return the score of resource-strategy-fit (§3.11): nothing for a node that has too little of something."""
    looked_at = [each for each in weights.fitted if some.request[each[0]]]
    if any(whole[c] and after[c] > whole[c] for c, _, _ in looked_at):
        return 0.0
    total = 0.0
    for c, weight, much in looked_at:
        if whole[c]:
            total += (after[c] if much else whole[c] - after[c]) * weight / whole[c]
    return total / sum(weight for _, weight, _ in looked_at) * (100 * weights.fit) if looked_at else 0.0


def _deviation(parts):
    if len(parts) < 2:
        return 0.0
    if len(parts) == 2:
        return abs(parts[0] - parts[1]) / 2
    mean = (parts[0] + parts[1] + parts[2]) / 3
    first, second, third = ((part - mean) ** 2 for part in parts)
    return math.sqrt((first + second + third) / 3)


def _best(cluster, some, pods, weights, among, around):
    """Return the node that is worth most, -1 where none is open; wishes decide first, or are added."""
    nodes = [
        node
        for node in among
        if some.verdicts[node] == 0
        and not some.foreign
        and all(cluster.free[node, c] >= q for c, q in enumerate(some.request) if q > 0)
    ]
    wished = worth(some.wishes, nodes, around) if some.wishes and nodes else {}
    is_first = some.wishes is None or some.wishes.weights.first

    def value(node):
        score = _weighed(cluster, node, some, weights) if weights else _score(cluster, node, some, pods)
        if some.avoided is not None or some.worth is not None:
            worth = 0.0 if some.worth is None else float(some.worth[node])
            score += worth + (0.0 if some.avoided is None else -AVOIDANCE * float(some.avoided[node]))
        wish = wished.get(node, 0)
        return (wish, score) if is_first else (0, score + wish)

    return max(nodes, key=lambda node: (value(node), -node), default=-1)


def worth(wishes, nodes, around):
    """Return what nodes are worth to pods with wishes, looking at every pod for each."""
    weights, found = wishes.weights, dict.fromkeys(nodes, 0)

    def add(weight, raw):
        most = max(raw.values())
        for node, each in raw.items():
            found[node] += weight * (100 * each // most if most else 0)

    if wishes.matched is not None:
        add(weights.nodes, {node: int(wishes.matched[node]) for node in nodes})
    if wishes.avoided is not None:
        add(-weights.taints, {node: int(wishes.avoided[node]) for node in nodes})
        for node in nodes:
            found[node] += 100 * weights.taints
    if wishes.near:
        raw = {
            node: sum(each.weight * around.near(each.mark, each.topology, node) for each in wishes.near)
            for node in nodes
        }
        least = min(raw.values())
        add(weights.pods, {node: each - least for node, each in raw.items()})
    if wishes.kin is not None:
        raw = {node: _kin(wishes.kin, node, around) for node in nodes}
        least = min(raw.values())
        add(wishes.kin.weight, {node: each - least for node, each in raw.items()})
    counted = [node for node in nodes if wishes.even and wishes.even[0].labelled[node]]
    raw = {node: _unevenness(wishes.even, node, counted, around) for node in counted}
    for node, each in raw.items():
        most, least = max(raw.values()), min(raw.values())
        found[node] += weights.spread * (100 * (most + least - each) // most if most else 100)
    return found


def _kin(kin, node, around):
    """What a node counts for a pod: who of its bucket is there, and who may come, put there one by one; less those it is parted from."""
    there = around.with_mark(kin.bucket).count(node) if kin.bucket is not None else 0
    there -= sum(around.with_mark(mark).count(node) for mark in kin.parted)
    free = [int(has) - int(asks) for has, asks in zip(around.cluster.free[node], kin.request, strict=True)]
    may_come = 0
    for each in kin.following:
        for _ in range(each.pods - len(around.with_mark(each.mark))):
            left = [has - int(asks) for has, asks in zip(free, each.request, strict=True)]
            if any(has < 0 for has, asks in zip(left, each.request, strict=True) if asks):
                break
            free, may_come = left, may_come + 1
    return 2 * (there + may_come) + (there > 0)


def _unevenness(wishes, node, counted, around):
    total = 0.0
    for each in wishes:
        here = around.domain(each.topology, node)
        pods = 0 if each.none_stands else sum(
            around.domain(each.topology, on) == here and bool(each.eligible[on])
            for on in around.with_mark(each.mark)
        )  # fmt: skip
        domains = {around.domain(each.topology, other) for other in counted}
        total += pods * math.log((len(counted) if each.by_node else len(domains)) + 2) + (each.skew - 1)
    return int(total) + (total - int(total) >= 0.5)


class Around:
    """Where all pods are, looked at anew for each question."""

    def __init__(self, ground, cluster):
        self.ground, self.cluster = ground, cluster
        self.pods = []  # (marks, node) of those that were placed

    def with_mark(self, mark):
        found = [node for node, count in self.ground.pods_with(mark) for _ in range(count)]
        return found + [node for marks, node in self.pods if mark in marks]

    def domain(self, topology, node):
        number = int(self.ground.domains(topology).of_node[node])
        return None if number < 0 else number

    def near(self, mark, topology, node):
        """How many pods with a mark are in the domain of a node."""
        here = self.domain(topology, node)
        return sum(here is not None and self.domain(topology, each) == here for each in self.with_mark(mark))

    def is_first(self, rule):
        return rule.starts and not any(
            self.domain(topology, node) is not None
            for node in self.with_mark(rule.mark)
            for topology in rule.topologies
        )

    def region(self, rule, node):
        return tuple(self.domain(topology, node) for topology in rule.topologies)

    def allows(self, rule, node):
        if isinstance(rule, Apart):
            return self.near(rule.mark, rule.topology, node) == 0
        if isinstance(rule, Together):
            if None in self.region(rule, node):
                return False
            return self.is_first(rule) or all(self.near(rule.mark, topology, node) for topology in rule.topologies)
        return self.spreads(rule, node)

    def spreads(self, rule, node):
        domains = {}
        for each in range(len(self.cluster.free)):
            if rule.eligible[each] and (domain := self.domain(rule.topology, each)) is not None:
                domains.setdefault(domain, 0)
                if not rule.none_stands:
                    domains[domain] += self.with_mark(rule.mark).count(each)
        here = self.domain(rule.topology, node)
        if not rule.eligible[node] or here is None:
            return False
        fewest = min(domains.values()) if len(domains) >= rule.least else 0
        return domains[here] + rule.counts_itself - fewest <= rule.skew


class Slow:
    """Serves queues and gangs by looking at all of them before each pod."""

    def __init__(self, cluster, gangs, pods, accounts, weights=None):
        self.cluster, self.gangs, self.pods, self.weights = cluster, gangs, pods, weights
        self.ledger = Ledger.of(accounts)
        self.total = [int(each) for each in cluster.allocatable.sum(axis=0)]
        self.held = [list(gang.held) or [0] * len(self.total) for gang in gangs]
        self.nodes = [[[] for _ in gang.bins] for gang in gangs]
        self.waiting = dict.fromkeys(range(len(gangs)), "minimum")
        self.full = set()
        self.failed = set()
        self.around = Around(cluster.relations.ground, cluster) if cluster.relations else None
        self.start = dict.fromkeys(range(len(gangs)))
        self.avoided = {number: set() for number in range(len(gangs))}

    def run(self):
        while self.waiting:
            number = self.next()
            if self.waiting[number] == "minimum":
                self.minimum(number)
            else:
                self.rest(number)
        return [None if n in self.failed else nodes for n, nodes in enumerate(self.nodes)]

    # Whose turn it is

    def next(self):
        """Return the gang that is served next: down the tree of queues, then by the order inside the queue."""
        queues = {self.gangs[number].account for number in self.waiting}
        account = None
        while some := [each for each in self.alive(queues) if each.parent is account]:
            account = min(some, key=self.queue_key)
        return min((n for n in self.waiting if self.gangs[n].account is account), key=self.gang_key)

    def alive(self, queues):
        return {each for queue in queues if queue for each in queue.line}

    def queue_key(self, account):
        priority, created = account.rank
        return -priority, self.ledger.share(account), created, account.name

    def gang_key(self, number):
        is_rest = self.waiting[number] == "rest"
        return -self.gangs[number].level, is_rest, self.dominant(number) if is_rest else 0.0, number

    def dominant(self, number):
        pairs = zip(self.held[number], self.total, strict=True)
        return max((has / whole for has, whole in pairs if whole), default=0.0)

    # What a turn gives

    def minimum(self, number):
        """Try one start after the other; without rules about other pods there is only one way."""
        gang = self.gangs[number]
        for _ in range(STARTS):
            if self.is_started(number):
                self.go_on(number)
                return
            self.take_back(number)
            if self.start[number] is None:
                break
            self.avoided[number] |= self.start[number]
            self.start[number] = None
        self.failed.add(number)
        del self.waiting[number]
        if gang.account is not None and gang.account.fifo:
            behind = {
                n for n, kind in self.waiting.items() if kind == "minimum" and self.gangs[n].account is gang.account
            }
            self.failed |= behind
            self.waiting = {n: kind for n, kind in self.waiting.items() if n not in behind}

    def is_started(self, number):
        """Place the minimum as long as any step gets on; tell whether all of it has nodes."""
        before = -1
        while before < (before := sum(map(len, self.nodes[number]))):
            filled = [self.fill_step(number, step) for step in self.gangs[number].steps]
            if all(filled):
                return True
        return False

    def fill_step(self, number, step):
        for some in step.bins:
            while (missing := step.need - sum(len(self.nodes[number][b]) for b in step.bins)) > 0:
                if not self.one(number, some, missing):
                    break
        return sum(len(self.nodes[number][b]) for b in step.bins) >= step.need

    def rest(self, number):
        """Place pods of one bin, until somebody else is behind by more than a grain."""
        gang = self.gangs[number]
        some = self.left(number)
        while len(self.nodes[number][some]) < gang.bins[some].count:
            if not self.one(number, some):
                self.full.add((number, some))
                break
            if self.is_ahead(number):
                break
        self.go_on(number)

    def go_on(self, number):
        if self.left(number) is None:
            del self.waiting[number]
        else:
            self.waiting[number] = "rest"

    def left(self, number):
        for some, each in enumerate(self.gangs[number].bins):
            if len(self.nodes[number][some]) < each.count and (number, some) not in self.full:
                return some
        return None

    def is_ahead(self, number):
        gang = self.gangs[number]
        others = [n for n in self.waiting if n != number]
        if gang.account is not None:
            alive = self.alive({self.gangs[n].account for n in others})
            for account in gang.account.line:
                beside = [e for e in alive if e.parent is account.parent and e is not account]
                if beside:
                    best = min(beside, key=self.queue_key)
                    share = self.ledger.share(best) + QUEUE_GRAIN
                    before, whole = self.ledger.measure(account)
                    if best.rank[0] == account.rank[0] and self.is_beyond(
                        self.ledger.used[account], whole, share - before, number
                    ):
                        return True
        same = [n for n in others if self.gangs[n].account is gang.account]
        if same:
            best = min(same, key=self.gang_key)
            if self.gangs[best].level == gang.level:
                share = self.dominant(best) if self.waiting[best] == "rest" else 0.0
                return self.is_beyond(self.held[number], self.total, share + GANG_GRAIN, number)
        return False

    def is_beyond(self, used, whole, share, number):
        request = self.cluster.classes[self.gangs[number].bins[self.last].pod_class].request
        return any(q > 0 and w and u > int(share * w) for u, w, q in zip(used, whole, request, strict=True))

    # One pod

    def one(self, number, some, together=1):
        gang = self.gangs[number]
        each = self.cluster.classes[gang.bins[some].pod_class]
        if len(self.nodes[number][some]) == gang.bins[some].count:
            return False
        if gang.account is not None and not self.ledger.admits(gang.account, each.request):
            return False
        among = self.open_nodes(number, some, each, together)
        node = _best(self.cluster, each, self.pods, self.weights, among, self.around)
        if node < 0:
            return False
        self.note_start(number, each, node)
        self.move(number, each, node, 1)
        self.nodes[number][some].append(node)
        self.last = some
        return True

    def open_nodes(self, number, some, each, together):
        nodes = range(len(self.cluster.free))
        if self.around is None or each.ties is None:
            return nodes
        nodes = [n for n in nodes if all(self.around.allows(rule, n) for rule in each.ties.rules)]
        rule = each.ties.together()
        if rule is None or not self.around.is_first(rule):
            return nodes
        if self.start[number] is None:
            nodes = [n for n in nodes if n not in self.avoided[number]]
        wanted = min(together, self.gangs[number].bins[some].count - len(self.nodes[number][some]))
        wanted = min(wanted, self.admitted(number, each, wanted))
        rooms = {}
        for node in nodes:
            region = self.around.region(rule, node)
            rooms[region] = rooms.get(region, 0) + self.room(each, node)
        return [n for n in nodes if rooms[self.around.region(rule, n)] >= wanted] or nodes

    def room(self, each, node):
        if each.verdicts[node] or each.foreign:
            return 0
        requests = [(c, int(q)) for c, q in enumerate(each.request) if q > 0]
        return max(min((int(self.cluster.free[node, c]) // q for c, q in requests), default=1 << 31), 0)

    def admitted(self, number, each, wanted):
        account = self.gangs[number].account
        if account is None:
            return wanted
        count = 0
        while count < wanted and self.ledger.admits(account, each.request):
            self.ledger.add(account, each.request)
            count += 1
        self.ledger.add(account, each.request, -count)
        return count

    def note_start(self, number, each, node):
        rule = each.ties.together() if self.around and each.ties else None
        if rule is not None and self.around.is_first(rule) and self.start[number] is None:
            region = self.around.region(rule, node)
            self.start[number] = {n for n in range(len(self.cluster.free)) if self.around.region(rule, n) == region}

    def move(self, number, each, node, sign):
        account = self.gangs[number].account
        self.cluster.free[node] -= sign * each.request
        if self.around is not None and each.ties is not None:
            if sign > 0:
                self.around.pods.append((each.ties.marks, node))
            else:
                self.around.pods.remove((each.ties.marks, node))
        if account is not None:
            self.ledger.add(account, each.request, sign)
        for column, amount in enumerate(each.request.tolist()):
            self.held[number][column] += sign * amount

    def take_back(self, number):
        for some, nodes in enumerate(self.nodes[number]):
            for node in nodes:
                self.move(number, self.cluster.classes[self.gangs[number].bins[some].pod_class], node, -1)
            nodes.clear()
