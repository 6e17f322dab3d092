"""A real SLURM of two nodes on this machine, in a folder of its own: munged, slurmctld and two slurmd."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.e2e.front_door import HOME, environment
from tests.waiting import until

PROGRAMS = ("setpriv", "munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol")
INSTALL = "apt-get install -y --no-install-recommends slurm-wlm munge"
NODES = ("127.0.0.1", "127.0.0.2")  # names that need no line in /etc/hosts
OVER = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")

# Processes are followed by their parents and nothing is bound to cores: this needs neither cgroups nor another
# privilege than root.
CONFIGURATION = """\
ClusterName=small
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool_%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd_%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd_%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=20
KillWait={kill_wait_s}
MinJobAge=3600
SchedulerParameters=sched_interval=1,batch_sched_delay=0
NodeName={nodes[0]} NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[1]} CPUs={cpus} RealMemory=4000 State=UNKNOWN
NodeName={nodes[1]} NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[2]} CPUs={cpus} RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


def missing() -> str | None:
    """Why there can be no SLURM here, and what mends it; None if there can."""
    absent = [name for name in PROGRAMS if not find(name)]
    if absent:
        return f"{', '.join(absent)} not installed: {INSTALL}"
    if os.geteuid() == 0:
        return None
    return f"only root may start the jobs of a SLURM of its own; for the programs: {INSTALL}"


def find(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def documented_script() -> str:
    """The script of docs/cluster.md."""
    page = (HOME / "docs" / "cluster.md").read_text()
    return next(block for block in page.split("```bash\n")[1:] if block.startswith("#!/bin/bash")).split("```")[0]


def _ports(count: int) -> list[int]:
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


class Slurm:
    """The daemons, as long as the `with` lasts, and the commands that talk to them."""

    def __init__(self, folder: Path, kill_wait_s: int = 30):
        self.folder, self.kill_wait_s = folder, kill_wait_s
        self.daemons: dict[str, subprocess.Popen] = {}

    def __enter__(self) -> Slurm:
        for path in (self.folder, self.folder / "state", *(self.folder / f"spool_{node}" for node in NODES)):
            path.mkdir(mode=0o755, parents=True, exist_ok=True)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            folder=self.folder, host=socket.gethostname(), ports=_ports(3), nodes=NODES, kill_wait_s=self.kill_wait_s,
            cpus=os.cpu_count()))
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        try:
            self._start("munged", "--foreground", "--force", f"--socket={self.folder}/munge.socket",
                        f"--key-file={key}",
                        f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
                        f"--seed-file={self.folder}/munged.seed")
            self.wait(lambda: (self.folder / "munge.socket").exists(), 20.0, "munged to listen")
            self._start("slurmctld", "-D", "-i", "-f", str(self.folder / "slurm.conf"))
            for node in NODES:
                self.start_node(node)
            self.wait(lambda: self.nodes_idle() == len(NODES), 60.0, "both nodes to be idle")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel all jobs, and end the daemons and whatever they have started."""
        if "slurmctld" in self.daemons:
            subprocess.run([find("scancel"), "--user=root", "--signal=KILL", "--full"], env=self.environment(),
                           capture_output=True, timeout=60)
        for process in self.steps():
            _kill(process)
        for name in reversed(list(self.daemons)):
            daemon = self.daemons.pop(name)
            daemon.terminate()
            try:
                daemon.wait(10.0)  # timed: it is killed then
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for process in self.steps():
            _kill(process)

    def start_node(self, node: str) -> None:
        self._start("slurmd", "-D", "-N", node, "-f", str(self.folder / "slurm.conf"), name=node)

    def _start(self, program: str, *words: str, name: str | None = None) -> None:
        with open(self.folder / f"{name or program}.out", "ab") as out:
            self.daemons[name or program] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", find(program), *words],  # also after kill -9 of the test
                env=self.environment(), stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True)

    def environment(self) -> dict[str, str]:
        """Of every command: where this SLURM is, and the Python of this test first on the path."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
        return environment(self.folder) | {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path,
                                           "MUNGE_SOCKET": str(self.folder / "munge.socket")}

    def steps(self) -> list[int]:
        """Processes that a job of this SLURM has started, and that are still there."""
        ours = f"SLURM_CONF={self.folder}/slurm.conf".encode()
        daemons = {daemon.pid for daemon in self.daemons.values()}
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if ours in path.read_bytes().split(b"\0") and int(path.parent.name) not in daemons:
                    found.append(int(path.parent.name))
            except OSError:
                continue
        return found

    def run(self, *words: str, timeout_s: float = 60.0, directory: Path | None = None,
            **more: str) -> subprocess.CompletedProcess:
        """One of SLURM's commands, to its end."""
        return subprocess.run([find(words[0]) or words[0], *words[1:]], env=self.environment() | more,
                              capture_output=True, text=True,
                              timeout=timeout_s, cwd=directory or self.folder)

    def submit(self, script: Path, *options: str) -> str:
        """The number of the new job, which runs in the script's folder."""
        done = self.run("sbatch", "--parsable", *options, str(script), directory=script.parent)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def job(self, number: str) -> dict[str, str]:
        """What SLURM knows of a job: JobState, Restarts, ExitCode ..."""
        words = self.run("scontrol", "show", "job", "-o", number).stdout.split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def start_again(self, number: str) -> None:
        """Let a job that is requeued begin now, and not two minutes later, as SLURM has it."""
        self.wait(lambda: self.job(number).get("JobState") == "PENDING", 60.0, f"job {number} to be requeued")
        assert self.run("scontrol", "update", f"JobId={number}", "StartTime=now").returncode == 0

    def wait_for_end(self, number: str, timeout_s: float = 300.0) -> dict[str, str]:
        self.wait(lambda: self.job(number).get("JobState") in OVER, timeout_s, f"job {number} to end")
        return self.job(number)

    def wait(self, condition: Callable[[], bool], timeout_s: float, what: str) -> None:
        def come() -> bool:
            dead = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
            assert not dead, f"ended: {dead}"
            return condition()

        try:
            until(come, what, timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.tails()}") from None

    def tails(self) -> str:
        """The ends of all logs."""
        files = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out"), *self.folder.rglob("slurm-*.out")])
        return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')[-1500:]}"
                         for file in dict.fromkeys(files))

    def nodes_idle(self) -> int:
        done = self.run("sinfo", "-h", "-N", "-o", "%T")
        return done.stdout.split().count("idle")


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        pass

