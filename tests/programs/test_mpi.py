"""MPI between the pods of a job, over ssh with the keys and the hosts of its plugins.

Needs sshd and mpirun: Debian's packages openssh-server and openmpi-bin. Root
only, as sshd is.
"""

import re

import pytest

from proof.systems.work import job, shell

pytestmark = [pytest.mark.system, pytest.mark.needs("mpirun", "sshd")]
PORT = 2222  # the machine's own sshd may have the usual one

# An MPI program that needs no compiler: all processes add up their ranks, and say to whose sshd they belong.
PROGRAM = """
import ctypes, os
mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
def handle(name):
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))
world, number = handle("ompi_mpi_comm_world"), handle("ompi_mpi_int")
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
assert mpi.MPI_Init(None, None) == 0
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
one_more = ctypes.c_int(rank.value + 1)
mpi.MPI_Allreduce(ctypes.byref(one_more), ctypes.byref(total), 1, number, handle("ompi_mpi_op_sum"), world)
own = os.environ["SSH_CONNECTION"].split()[2]
names = [line.split()[1] for line in open("/etc/hosts") if line.split()[:1] == [own]]
print(f"rank {rank.value} of {size.value} in {names[0]} knows the sum {total.value}", flush=True)
mpi.MPI_Finalize()
"""
# Every pod of this machine has an address of its own, which sshd has to keep to, and a directory for temporary files, which sshd
# does not hand on: in one /tmp the daemons of mpirun clear away what the others are about to use.
SSHD = (
    f"mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -p {PORT} "
    "-o ListenAddress=$HOSTNAME -o SetEnv=TMPDIR=${TMPDIR:-/tmp}"
)
MPIRUN = f"""
for host in $(echo $MPI_HOST | tr , ' '); do
  until ssh $host true; do sleep 0.2; done
done
exec mpirun --allow-run-as-root --host $MPI_HOST -np 2 python3 -c '{PROGRAM}'
"""


def log(person, name):
    return person.get(f"/jobs/default/{name}/log/", pod=f"{name}-master-0").text


def test_two_workers_add_up_their_ranks(person, watcher):
    tasks = [
        shell(MPIRUN, name="master", policies=[{"event": "PodFailed", "action": "TerminateJob"}]),
        shell(SSHD, name="worker", replicas=2, terminationGracePeriodSeconds=1),
    ]
    plugins = {"mpi": [f"--port={PORT}"], "ssh": [f"--ssh-port={PORT}"]}
    person.create(job("mpi", *tasks, plugins=plugins, minSuccess=1))
    done = watcher.reaches("mpi", "Completed", "Terminated")["status"]
    output = log(person, "mpi")
    assert done["state"]["phase"] == "Completed", output
    lines = sorted(re.findall(r"^rank .*", output, re.MULTILINE))
    assert lines == [f"rank {n} of 2 in mpi-worker-{n} knows the sum 3" for n in (0, 1)], output
