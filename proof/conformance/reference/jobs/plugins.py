"""Plugins of jobs and their arguments (reference: volcano-job §5)."""

from __future__ import annotations

from proof.conformance.items import differs, section

SECTIONS = (
    section(
        "5.1",
        "All plugins",
        {
            "names": "ssh, env, svc, tensorflow, mpi, pytorch, hcclrank, ray",
            "made": "What a plugin wants is made before the first pod, and once",
            "deleted": "It goes when all pods are ended",
            "marker": "`controlledResources` lists the plugins, but not hcclrank",
            "order": differs("Unspecified", "Order of plugins"),
            "arguments": "As Go's package flag reads them",
            "wrong arguments": differs("Reading stops there; a log says so", "Wrong arguments of plugins"),
            "unknown": "Refused when the job is created",
            "address": "`<hostname>.<subdomain>`: the template's, or the names of pod and job",
            "one host": "A hostname in the template is one host for the whole task",
        },
    ),
    section("5.2", "env", {"VK_TASK_INDEX, VC_TASK_INDEX": "In every container and init container, in this order"}),
    section(
        "5.3",
        "svc",
        {
            "--publish-not-ready-addresses": "The Service also publishes pods that are not ready",
            "--disable-network-policy": "No NetworkPolicy is made",
            "--inject-hosts-env": "Without it no `VC_*` variables; ConfigMap and mount stay",
            "ConfigMap": "`<job>-svc`: of each task the hosts by line and by comma, and their number",
            "Service": "`<job>`, headless, for the pods of the job",
            "NetworkPolicy": "`<job>`: pods of the job let in pods of the job",
            "somebody else's": differs(
                "Used as they are", "Somebody else's Service or NetworkPolicy under such a name"
            ),
            "update": "The ConfigMap follows the replicas",
            "delete": "All three go when the pods are ended",
            "hostname, subdomain": "Names of pod and job, where the template leaves them open",
            "variables": "`VC_<TASK>_HOSTS` and `VC_<TASK>_NUM` for each task, in init containers too",
            "/etc/volcano": "The ConfigMap as files, in init containers too",
            "no replicas": "An empty list and 0",
        },
    ),
    section(
        "5.4",
        "ssh",
        {
            "--ssh-key-file-path": "Where the files are mounted; `/root/.ssh`",
            "--ssh-private-key, --ssh-public-key": "A pair to use; the public key counts only with the private one",
            "--ssh-port": "The port in the configuration; 22, also for what is no port",
            "--no-root": "An unknown flag, which does no harm",
            "Secret": "`<job>-ssh`: id_rsa (PKCS#1, 2048 bits), id_rsa.pub, authorized_keys, config",
            "config": differs("Host keys are not checked; host, address and port of each pod", "ssh configuration"),
            "volume": "`<job>-ssh`, the files below `.ssh`, mode 0600, elsewhere than in `/root/.ssh` 0644",
            "mount": "In every container and init container, with the sub-path `.ssh`",
            "update": differs("Nothing", "ssh configuration"),
            "delete": "The Secret goes, so that each run has new keys",
        },
    ),
    section(
        "5.5",
        "pytorch",
        {
            "--master, --worker": "The tasks; `master`, `worker`",
            "--port": "23456",
            "--wait-master-enabled": "Workers wait for the master in a last init container",
            "--wait-master-timeout": "For so many seconds; 300",
            "--wait-master-image": "In this image; `busybox:1.36.1`",
            "no master": "Nothing is done",
            "port": "`pytorchjob-port` in every container, unless it is declared",
            "MASTER_ADDR, MASTER_PORT, WORLD_SIZE": "Of the first master; pods of masters and workers",
            "RANK": "0 for masters, index + 1 for workers, none for others",
            "init containers": "Are left alone",
            "wait-for-master": differs(
                "Asks with `nc`, or `/dev/tcp`, every 2 s",
                "`wait-for-master` of pytorch where `sh` knows no `/dev/tcp` and there is no `nc`",
            ),
        },
    ),
    section(
        "5.6",
        "tensorflow",
        {
            "--ps, --worker, --chief, --evaluator": "The tasks of the roles",
            "--port": "2222",
            "single pod": "Is left alone",
            "TF_CONFIG": "Cluster by role, without empty ones, and the pod's own role and index, in every container",
            "other task": "Has its own name as type",
            "one host": "Is repeated for each replica",
        },
    ),
    section(
        "5.7",
        "mpi",
        {
            "--master, --worker": "The tasks; `master`, `worker`",
            "--port": "22",
            "port": "`mpijob-port` in all containers and init containers, unless it is declared",
            "MPI_HOST": "Addresses of the workers, in containers and init containers of the master",
            "no worker": "The master is left alone",
        },
    ),
    section(
        "5.8",
        "ray",
        {
            "--head, --worker": "The tasks; `head`, `worker`",
            "--headContainer, --workerContainer": "The containers in which Ray is started; `head`, `worker`",
            "--port, --dashboardPort, --clientPort": "6379, 8265, 10001",
            "head": differs(
                "Ports gcs, dashboard and client-server, unless declared; `ray start --head` with them",
                "Address by which a Ray node is known",
            ),
            "worker": differs("`ray start` with the head's address", "Address by which a Ray node is known"),
            "no head": differs(
                "The job cannot be synced",
                "Job without the head task of the plugin ray, or whose name the Service of svc cannot have",
            ),
            "Service": "`<job>-head-svc` with the three ports, for the head",
            "delete": "The Service goes when the pods are ended",
        },
    ),
    section(
        "5.9",
        "hcclrank",
        {
            "--master, --worker": "The tasks; `master`, `worker`",
            "hccl/rankIndex": "The first RANK of a container, or else masters by index, workers behind them, others none",
            "written": "One that is written stays",
        },
    ),
)
