"""Commands in processes of their own that need not import everything first: they are forked from one that has.

Importing torch and the simulator takes a command two seconds of processor time, and the tests run some hundred
commands. The server (this file run as a program) imports once, then forks a process for each command, which does the
rest as `python -P -m rearrange` does. What is forked is a child of the server, so its end is asked of the server.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
PRELOADED = ("torch", "torch.distributed", "torch._dynamo", "gymnasium", "hydra",
             "rearrange.command_line.composition.parse_overrides", "rearrange.command_line.commands",
             "rearrange.env.make_simulator", "rearrange.home.simulation.mujoco.simulator", "rearrange.env.skill_env",
             "skills", "planner.execute", "eval.evaluate", "eval.scenario.command", "trainer.loop", "trainer.policy",
             "trainer.checkpoint")
_server: tuple[subprocess.Popen, socket.socket] | None = None


class Forked(subprocess.Popen):
    """A Popen whose process the server forks: `python -P -m <module> <words>` in a directory, with these environment
    variables.
    """

    def __init__(self, words: list[str], cwd: Path, env: dict[str, str], module: str = "rearrange") -> None:
        self._module = module
        super().__init__(words, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                         start_new_session=True)

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags,
                       shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *_) -> None:
        self._asked, theirs = socket.socketpair()
        request = json.dumps({"module": self._module, "words": list(args), "cwd": str(cwd), "env": env}).encode()
        with theirs:
            _connection().sendall(len(request).to_bytes(4, "big"))
            _connection().sendall(request)
            socket.send_fds(_connection(), [b"x"], [c2pwrite, errwrite, theirs.fileno()])
        for fd in (c2pwrite, errwrite):
            os.close(fd)
        self._closed_child_pipe_fds = self._child_created = True
        self.pid = int.from_bytes(self._asked.recv(4), "big")

    def _try_wait(self, wait_flags):
        """(pid, status) once it has ended, else (0, 0)."""
        if not select.select([self._asked], [], [], 0 if wait_flags & os.WNOHANG else None)[0]:
            return 0, 0
        return self.pid, int.from_bytes(self._asked.recv(4), "big")

    def _internal_poll(self, *_, **__):
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self._handle_exitstatus(status)
        return self.returncode


def _connection() -> socket.socket:
    """To the server of this process, which is started when it is first needed and ends with this process."""
    global _server
    if _server is None:
        ours, theirs = socket.socketpair()
        paths = os.pathsep.join([str(HOME), *filter(None, [os.environ.get("PYTHONPATH")])])
        process = subprocess.Popen([sys.executable, "-P", __file__, str(theirs.fileno())], stdout=subprocess.DEVNULL,
                                   env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
                                   pass_fds=[theirs.fileno()], start_new_session=True)
        theirs.close()
        _server = process, ours
        atexit.register(lambda: (ours.close(), process.wait()))
    return _server[1]


def _serve(connection: socket.socket) -> None:
    """Fork a process for each request, and say how each ended; ends when nobody can ask any more."""
    for name in PRELOADED:
        __import__(name)
    gc.collect()
    gc.freeze()  # what is shared stays shared
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads cannot be forked"
    running: dict[int, socket.socket] = {}
    woken, waker = socket.socketpair()
    for end in (woken, waker):
        end.setblocking(False)
    signal.set_wakeup_fd(waker.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([connection, woken], [], [])
        if woken in ready:
            woken.recv(1024)
        if connection in ready:
            size = connection.recv(4, socket.MSG_WAITALL)
            if not size:
                return
            asked = json.loads(connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
            _, (out, err, told), _, _ = socket.recv_fds(connection, 1, 3)
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for end in (connection, woken, waker, *running.values()):
                    end.close()
                os.close(told)
                _be(asked, out, err)
            os.close(out), os.close(err)
            running[pid] = socket.socket(fileno=told)
            running[pid].sendall(pid.to_bytes(4, "big"))
        for pid in list(running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                with running.pop(pid) as told:
                    _tell(told, status)


def _tell(told: socket.socket, status: int) -> None:
    try:
        told.sendall(status.to_bytes(4, "big"))
    except OSError:  # nobody waits for it
        pass


def _be(asked: dict, out: int, err: int) -> None:
    """Be the command, in the process that was forked for it."""
    os.setsid()
    os.chdir(asked["cwd"])
    nothing = os.open(os.devnull, os.O_RDONLY)
    for fd, number in ((nothing, 0), (out, 1), (err, 2)):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.path[:0] = [path for path in asked["env"]["PYTHONPATH"].split(os.pathsep) if path not in sys.path]
    sys.argv = [asked["module"], *asked["words"]]
    status: object = 0
    try:
        runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
    except SystemExit as error:
        status = error.code
    except BaseException:
        traceback.print_exc()
        status = 1
    # The end of a Python process, but for taking apart all that the server imported, which takes most of a second.
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush(), sys.stderr.flush()
    os._exit(status if isinstance(status, int) else int(bool(status)))


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
