"""How the scheduler is configured (reference: volcano-scheduler §4)."""

from __future__ import annotations

from proof.conformance.items import decided, differs, section

CONF = "`volcano-scheduler.conf`"
ALWAYS = "Plugins and actions that are not listed"

SECTIONS = (
    section(
        "scheduler 4.1",
        "volcano-scheduler.conf",
        {
            "Volcano's own": "The configurations that come with Volcano are understood",
            "nothing": differs("Without a file what is compiled in holds", "Without a configuration"),
            "actions": "A text with the names of actions, separated by commas",
            "order of actions": differs("They run as they are listed", "Order of `preempt` and `reclaim`"),
            "unknown action": differs("The file is not used", CONF),
            "unknown plugin": differs("Is left out", CONF),
            "hdrf beside proportion": "In one tier they are refused",
            "tiers": differs("The first tier that decides is enough", "Tiers of plugins"),
            "flags": differs("Each part of a plugin has a switch", ALWAYS),
            "enableJobEnqueued": "Switches off overcommit and sla",
            "enableNodeOrder": "Switches off nodeorder and binpack",
            "numbers as text": "Numbers may be written as text",
            "what is no number": differs("The default stays", CONF),
            "plugins that always work": differs("What is not listed does nothing", ALWAYS),
            "invalid": "The configuration before it holds",
            "reloading": differs("The file is watched", CONF),
            "one cycle": "A cycle goes by one configuration",
            "configurations": "Arguments of actions",
            "metrics": differs("Where the load of nodes comes from", "`usage`: source of figures (`metrics`)"),
        },
    ),
    section(
        "scheduler 4.2",
        "Options of the process",
        {
            "--scheduler-name": "`volcano`; pods of others only take room",
            "--schedule-period": differs("1s", "When a cycle begins"),
            "--percentage-nodes-to-find and the like": differs(
                "Part of the nodes that is looked at", "Nodes that are looked at"
            ),
            "--leader-elect": "Of several processes one decides at a time",
            "--priority-class": decided("Whether classes count", "Options of the scheduler's process"),
            "--default-queue": decided("Another queue for groups that name none", "Options of the scheduler's process"),
            "--node-selector": decided(
                "Only some nodes",
                "Several schedulers for one cluster (`--node-selector`, sharding, `MULTI_SCHEDULER_ENABLE`, the agent scheduler)",
            ),
            "--scheduler-sharding-mode, MULTI_SCHEDULER_ENABLE": decided(
                "Several schedulers share the nodes",
                "Several schedulers for one cluster (`--node-selector`, sharding, `MULTI_SCHEDULER_ENABLE`, the agent scheduler)",
            ),
            "--cache-dumper": decided(
                "Writes what the scheduler knows to a file", "Options of the scheduler's process"
            ),
            "--kube-api-qps, threads, addresses, timeouts": decided(
                "Of the process", "Options of the scheduler's process"
            ),
        },
    ),
    section(
        "scheduler 4.3",
        "Metrics",
        {
            "volcano_queue_…": "Figures of queues for Prometheus",
            "unschedule_…, e2e_job_scheduling_duration": "How many wait, for how many pods, and how long it took until a job had its nodes",
            "others": decided(
                "How long cycles, actions and plugins take, and how often there were which",
                "Numbers of cycles, actions and plugins for Prometheus",
            ),
        },
    ),
)
