"""The documents that this project was asked to keep: queue state (2019) and coscheduling (2018), and the latter beside Volcano.

Sources: the seeds 001 and 002; volcano-scheduler §10.
"""

from __future__ import annotations

from proof.conformance.items import SEED, decided, differs, section

QUOTA = "Quotas are kept pod by pod; a group reserves nothing yet"
KEP_NAMES = "Names of the coscheduling KEP"

_QUEUE_STATE = (
    section(
        "queue state 1",
        "What a queue can: the table of the document",
        {
            "Open": "The default; can be set; takes jobs; is not deleted; is scheduled; deserves its share",
            "Closed": "Can be set; takes no jobs; can be deleted; is scheduled; deserves its share",
            "Closing": "Cannot be set; takes no jobs; is not deleted; is scheduled; deserves its share",
        },
        SEED,
    ),
    section(
        "queue state 2",
        "Lifecycle",
        {
            "spec.state": "The wish",
            "status.state": "The fact",
            "default": "A new queue without a wish is Open",
            "created Closed": "A queue may be created Closed",
            "only two": "Another wish is refused, at creation and later",
            "deleted when Closed": "Only a queue whose status is Closed is deleted, whatever its wish",
            "default stays": "`default` is not deleted",
            "empty wish": "A queue without a wish is Open",
            "wish Open": "Open",
            "wish Closed, in use": differs("Closing while pod groups are left", "Closing"),
            "wish Closed, empty": "Closed",
            "closing ends nothing": "What is in a queue is not ended by closing it",
        },
        SEED,
    ),
    section(
        "queue state 3",
        "Which jobs are taken",
        {
            "no queue": "A job that names no queue is taken",
            "Open": "A job for an open queue is taken",
            "not Open": "Another is refused",
        },
        SEED,
    ),
    section("queue state 4", "Scheduling", {"Closing": "What is in a closing queue goes on to be scheduled"}, SEED),
    section(
        "queue state 5",
        "vcctl",
        {
            "create": "A queue is created with a state",
            "get, list": "The state is shown",
            "update": "Weight or state change",
            "delete": "A queue is deleted",
            "operate": "open, close, update",
        },
        SEED,
    ),
)

_KEP = (
    section(
        "coscheduling 1",
        "The API",
        {
            "group and version": differs("`incubator.scheduling.k8s.io/v1alpha1`", KEP_NAMES),
            "MinMembers": "`minMembers`, or `numMember`: so many pods start together",
            "TotalResources": "`totalResources`: what has to be there for them",
            "status": differs("Admitted, running, succeeded and failed pods are counted", KEP_NAMES),
            "group-name": "`scheduling.k8s.io/group-name` names the group of a pod, in its namespace",
            "several collections": "Pods of different controllers may be in one group",
            "existing workloads": "They need few changes, or none",
        },
        SEED,
    ),
    section(
        "coscheduling 2",
        "Lifecycle",
        {
            "events": "Unschedulable is told on the group, for controllers to act on",
            "controllers": "Controllers keep the lifecycle of their pods; a job's answer comes from its policies",
            "deletion": "Deleting a group does not change its pods' status",
            "updates": "Need not be heeded; they are",
            "owner": "A group goes with the job that owns it",
        },
        SEED,
    ),
    section(
        "coscheduling 3",
        "Scheduling",
        {
            "no group": differs(
                "A pod that names no group is unschedulable, and told so", "Group that is made for pods"
            ),
            "group missing": "Pods are not scheduled before their group exists",
            "other schedulers": "Only pods that name the scheduler are placed",
            "too few pods": differs(
                "Fewer pods than the minimum: not scheduled, and the pods are told", "Pods that are told why they wait"
            ),
            "some run": "Some run and the minimum is not there: Unschedulable on the group",
            "node affinity": "Where pods go heeds their node affinity",
            "all at once": "All pods of the minimum are bound, or none",
            "succeeded count": "Pods that have succeeded count for the minimum",
            "does not fit": differs(
                "The pods wait, and what was found for them is kept from other jobs",
                "A large gang beside a stream of smaller jobs",
            ),
        },
        SEED,
    ),
    section(
        "coscheduling 4",
        "Other features",
        {
            "multi-scheduler": "Works beside another scheduler; its pods take room",
            "preemption": "Preemption heeds groups",
            "quota": differs("`totalResources` reserves quota for the group", "ResourceQuotas at entry"),
            "kubectl": "kubectl shows groups with their status",
            "cluster autoscaler": "Need not work; pods say PodScheduled=False, Unschedulable",
        },
        SEED,
    ),
)

_TODAY = (
    section(
        "scheduler 10.1",
        "Coscheduling in Volcano today, where it is not what the document says",
        {
            "1": "Groups are of `scheduling.volcano.sh/v1beta1`",
            "2": "`minMember`",
            "3": "`minResources` is a condition of entry, and reserves nothing",
            "4": "Phases, conditions, counts; no Admitted",
            "6": differs("A group is made for pods that name none", "Group that is made for pods"),
            "8": differs("The group gets condition and event, the pods PodScheduled=False", "Why a group waits"),
            "9": "And the phase Unknown while some run",
            "10": "One rule of readiness: with a node, running or succeeded; of each task too",
            "11": differs(
                "What was found for a group that does not fit is given up at once, or at the end of the cycle",
                "Room that pods are about to leave",
            ),
            "12": "Filters of kube-scheduler hold: affinity to nodes and pods, taints, ports, spreading; of volumes see scheduler 3.7",
            "13": differs("backfill is for pods that ask for nothing", "Pods that ask for nothing"),
            "14": "A changed group counts from the next cycle on",
            "16": "Policies of a job act when pods fail; the scheduler only reports",
            "17": differs("Gangs stay at their minimum", "Victims of `preempt`"),
            "18": decided(
                "Several schedulers may share the nodes by labels, shards or hashes",
                "Several schedulers for one cluster (`--node-selector`, sharding, `MULTI_SCHEDULER_ENABLE`, the agent scheduler)",
            ),
            "19": differs(
                "Pods say PodScheduled=False, Unschedulable or Schedulable", "Pods that are told why they wait"
            ),
            "20": "vcctl",
            "21": "Every group has a queue, and is let in before its pods are made",
        },
    ),
    section(
        "scheduler 10.2",
        "Jobs in Volcano today, where it is not what the design of 2018 says",
        {
            "3": "Which pods come first is fixed: priority, number, age",
            "4": "The job's priority is that of its class, never that of its pods",
            "5": differs(
                "Priority only orders attempts: three executors may start without their driver",
                "Which pods make the minimum of a job",
            ),
            "7": differs("Pods beyond the minimum come in turns, and may be taken back", "Victims of `preempt`"),
            "8": "Pods are made when the group has left Pending",
        },
    ),
)

SECTIONS = (*_QUEUE_STATE, *_KEP, *_TODAY)
