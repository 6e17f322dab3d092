"""Python processes that need not import everything first: they are forked from one that has.

Importing torch and the simulator takes a command two seconds of processor time, and each process that it starts as
long; the tests run some hundred commands. The server (this file run as a program) imports once, then forks a process
for each `python -P -m <module>` that it is asked for. That is a child of the asker, in every respect: the server's
child forks it and ends, and the asker is, for this moment, the one to whom the system gives orphans. A command that
was forked has a server of its own, forked before it did anything, for the processes that it starts.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
PRELOADED = ("torch", "torch.distributed", "torch.distributed.run", "torch.utils.tensorboard", "torch._dynamo",
             "gymnasium", "hydra", "cloudpickle", "rearrange.command_line.cli",
             "rearrange.command_line.composition.parse_overrides", "rearrange.command_line.commands",
             "rearrange.env.make_simulator", "rearrange.home.simulation.mujoco.simulator", "rearrange.env.skill_env",
             "skills.pick", "planner.execute", "eval.evaluate", "eval.scenario.command", "eval.processes",
             "trainer.loop", "trainer.policy", "trainer.checkpoint")
CHILDLESS = ("trainer.workers.worker", "trainer.workers.evaluation_process", "eval.processes")  # they need no server
MOST = 1 << 17  # bytes of a request
NAME = "warm server"  # among the processes of a session
PDEATHSIG, SET_NAME, SUBREAPER = 1, 15, 36  # of prctl
_prctl = ctypes.CDLL(None).prctl
_server: socket.socket | None = None
_asking = threading.Lock()
_paths = [path for path in sys.path if path not in os.environ.get("PYTHONPATH", "").split(os.pathsep)]


class Popen(subprocess.Popen):
    """A Popen that has the server, where there is one, fork what is `python -P -m <module> <words>`."""

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags,
                       shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, restore_signals, gid, gids, uid,
                       umask, start_new_session, process_group):
        if _server is None or not _is_ours(args):
            return super()._execute_child(
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
                p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, restore_signals, gid, gids, uid, umask,
                start_new_session, process_group)
        request = {"parent": os.getpid(), "command": [*args], "env": dict(os.environ if env is None else env),
                   "numbers": [*pass_fds], "mask": [*signal.pthread_sigmask(signal.SIG_BLOCK, [])],
                   "group": None if start_new_session else os.getpgrp() if process_group == -1 else process_group}
        place = os.open(cwd or ".", os.O_RDONLY)
        screen = [fd if at == -1 else at for fd, at in enumerate((p2cread, c2pwrite, errwrite))]
        with _asking:
            _prctl(SUBREAPER, 1)
            socket.send_fds(_server, [json.dumps(request).encode()], [place, *screen, *pass_fds])
            self.pid = int(_server.recv(20))
            _prctl(SUBREAPER, 0)
        os.close(place)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)


class Begins(Popen):
    """One that starts the server where there is none yet."""

    def _execute_child(self, args, *others):
        if _is_ours(args):
            start_server()
        super()._execute_child(args, *others)


def _is_ours(args: str | list[str]) -> bool:
    return not isinstance(args, str) and [*args[:3]] == [sys.executable, "-P", "-m"]


def forked(words: list[str], cwd: Path, env: dict[str, str], module: str = "rearrange") -> Popen:
    """`python -P -m <module> <words>` in a directory, with these environment variables, as the leader of a session."""
    start_server()
    return Popen([sys.executable, "-P", "-m", module, *words], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def start_server() -> None:
    """The server of this process, if there is none yet; it ends with this process."""
    global _server
    if _server is None:
        _server, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        _server.settimeout(120.0)  # timed: a process that dies before it says its number is not waited for
        paths = os.pathsep.join([str(HOME), *filter(None, [os.environ.get("PYTHONPATH")])])
        room = "-" * 8000  # for the commands that are shown in its place
        process = subprocess.Popen([sys.executable, "-P", __file__, str(theirs.fileno()), room],
                                   env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
                                   stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()], process_group=0)
        theirs.close()
        atexit.register(lambda: (_server.close(), process.wait()))


def _serve(asked: socket.socket) -> None:
    """Fork what is asked for; ends when nobody can ask any more. What is forked hears interrupts, also where the tests
    run in the background of a shell, which ignores them."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    while True:
        request, files, _, _ = socket.recv_fds(asked, MOST, 16)
        if not request:
            return
        between = os.fork()
        if not between:
            between = os.getpid()
            if os.fork():
                os._exit(0)
            while os.getppid() == between:  # which ends now
                os.sched_yield()
            _be(json.loads(request), asked, *files)
        os.waitpid(between, 0)
        for fd in files:
            os.close(fd)


def _be(request: dict, asked: socket.socket, place: int, *files: int) -> None:
    """Be the command, in the process that was forked for it."""
    if os.getppid() != request["parent"]:
        os._exit(1)
    os.setsid() if request["group"] is None else os.setpgid(0, request["group"])
    asked.send(str(os.getpid()).encode())
    os.fchdir(place)
    sys.modules["rearrange.home.settings.installed_parts"].forget()  # packages may have been installed since
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 500) for fd in files]
    os.closerange(3, 500)
    for fd, number in zip(high, (0, 1, 2, *request["numbers"])):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[:] = [*filter(None, request["env"].get("PYTHONPATH", "").split(os.pathsep)), *_paths]
    _, _, _, module, *words = request["command"]
    sys.argv = [module, *words]
    sys.modules["numpy"].random.seed()  # torch's is the same in each process, and Python's is new by itself
    _show(*request["command"])
    server = None if module in CHILDLESS else _fork_server()
    sys.modules.pop(module, None)
    signal.pthread_sigmask(signal.SIG_SETMASK, request["mask"])
    status: object = 0
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as error:
        status = error.code
        if isinstance(status, str):
            print(status, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    # The end of a Python process, but for taking apart all that the server imported, which takes most of a second.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush(), sys.stderr.flush()
    if server:
        os.kill(server, signal.SIGKILL)
        os.waitpid(server, 0)
    os._exit(status if isinstance(status, int) else int(bool(status)))


def _fork_server() -> int:
    """The server of a process that was forked; its process id."""
    global _server
    _server, asked = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent, pid = os.getpid(), os.fork()
    if pid:
        asked.close()
        return pid
    _prctl(PDEATHSIG, signal.SIGKILL)
    _prctl(SET_NAME, NAME.encode())
    if os.getppid() != parent:
        os._exit(1)
    os.setpgid(0, 0)
    _server.close()
    _server = None
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    _serve(asked)
    os._exit(0)


def _show(*command: str) -> None:
    """What the system says that this process runs."""
    _prctl(SET_NAME, b"python")
    begins, ends = map(int, Path("/proc/self/stat").read_text().rpartition(")")[2].split()[45:47])
    shown = os.fsencode("\0".join(command))
    ctypes.memmove(begins, shown[:ends - begins].ljust(ends - begins, b"\0"), ends - begins)


if __name__ == "__main__":
    subprocess.Popen = Popen
    gc.disable()  # all that is imported stays
    for name in PRELOADED:
        __import__(name)
    gc.freeze()  # what is shared stays shared
    gc.enable()
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads cannot be forked"
    _serve(socket.socket(fileno=int(sys.argv[1])))
