"""Environment workers: processes that step several environments each.

A worker is a plain child process (`python -m trainer.workers.worker`), so a script that trains needs no `if __name__`
guard, no named semaphore or shared memory exists that could leak, and torch is not loaded. What passes:

    learner -> worker   set-up (pickled: environment factory, seeds), then the shared memory, then "step these"
    worker -> learner   the spaces, then "these environments are done", "this episode ended" or "this failed: traceback"

Each environment has one slot in the shared memory and at most one step under way: no slot is in use twice.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trainer.faults.signals import STOPPING, signal_name
from trainer.logs import screen
from trainer.workers.channel import MESSAGE, STEP, Channel, Closed, SharedArrays
from trainer.workers.dtype_checks import changed, is_flag, may_change

COLLECT_EVERY = 20_000  # new containers between two searches for cycles; Python's own 700 cost 4 % of a worker
NOTIFY_EVERY_S = 0.002  # steps faster than this are announced together: every message wakes the learner
START_TIMEOUT_S = 300.0  # to start the process and to construct its environments
KILLED_WITHIN_S = 10.0  # what the system may take to end a process that it was told to kill
LARGEST_REWARD = float(np.finfo(np.float32).max)
REPLAYED = pickle.dumps(("replayed",))  # a sign of life
DOING = ("", "step", "reset")  # what the shared field `doing` says that a worker does with an environment
STEP_GIVES = "; Gymnasium's gives (observation, reward, terminated, truncated, info), the old Gym's another."
RESET_GIVES = "; Gymnasium's gives (observation, info), the old Gym's an observation alone."


@dataclass(frozen=True)
class Setup:
    """What a worker is told first."""

    make_env: bytes  # cloudpickled zero-argument callable
    first_env: int  # number of its first environment among all
    num_envs: int
    seed: int
    sys_path: list[str]
    seed_episodes: bool = False  # every episode has its own seed, so that it can be played again (deterministic=true)
    replay: tuple = ()  # per environment: number of its episode, actions (L, ...) that it has taken in it
    specs: tuple[bytes, ...] = ()  # of environments that the learner's process has registered
    offset: int = 0  # number of this rank's first environment among those of all ranks: no two have the same seed
    announced: int = 1 << 16  # so many environments that are done are announced at once, at most


def start_child(module: str, theirs: socket.socket) -> subprocess.Popen:
    """Start `python -m module <file descriptor of its socket> <our process id>`, with our modules and one thread.

    A file trainer.py or eval.py of the user is not ours (-P, and the order of paths). It leads a process group: Ctrl-C
    does not reach it, and what it starts ends with it. Signals wait until it can leave them to us.
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    paths = {"PYTHONPATH": os.pathsep.join(_paths({"trainer", module.partition(".")[0]}))}
    command = [sys.executable, "-P", "-m", module, str(theirs.fileno()), str(os.getpid())]
    with signals_held():
        return subprocess.Popen(command, process_group=0, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                env=os.environ | threads | paths)


def _paths(names: set[str]) -> list[str]:
    """Where Python looks for modules; folders that hold others of these names, which are ours, come last."""
    home, paths = Path(__file__).resolve().parents[2], [str(path) or os.getcwd() for path in sys.path]
    hiding = [path for path in paths if Path(path).resolve() != home and any(
        Path(path, name).is_dir() or Path(path, f"{name}.py").is_file() for name in names)]
    others = [path for path in paths if path not in hiding]
    return [*others, *[str(home)] * (str(home) not in others), *hiding] if hiding else paths


def is_stopped(process: subprocess.Popen) -> bool:
    """Whether a signal (SIGSTOP, or a debugger) holds a process; False where the system does not tell."""
    try:
        with open(f"/proc/{process.pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "Tt"
    except OSError:
        return False


def how_ended(process: subprocess.Popen) -> str:
    """How a child whose socket closed has ended, in words."""
    try:
        code = process.wait(timeout=2)
    except subprocess.TimeoutExpired:
        return "closed its connection"
    return f"was killed by signal {signal_name(-code)}" if code < 0 else f"exited with status {code}"


def end_child(process: subprocess.Popen, grace_s: float = 0.0) -> bool:
    """End a child of `start_child`, and whatever its environments have started, after `grace_s` in which it may end by
    itself; False if the system does not do it in time. Safe to call twice."""
    try:
        process.wait(timeout=max(0.0, grace_s))
    except subprocess.TimeoutExpired:
        pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # all gone; macOS says so of zombies
        pass
    try:
        process.wait(timeout=KILLED_WITHIN_S)
    except subprocess.TimeoutExpired:
        return False
    return True


@contextmanager
def signals_held() -> Iterator[None]:
    """Signals that ask for the end wait until the end; children that start meanwhile hold them too.

    Their handlers wait as well: a thread that does not hold them, as numeric libraries have, may be given a signal, and
    Python would call its handler here, in the middle. SIGINT, whose handler raises, gets its own back last.
    """
    came: list[int] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    handlers: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for s in reversed(STOPPING):
                if callable(signal.getsignal(s)):  # what is ignored stays ignored, by children too
                    handlers[s] = signal.getsignal(s)  # before it is replaced: here SIGINT may still raise
                    signal.signal(s, lambda signum, _: came.append(signum))
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for s, handler in handlers.items():
            signal.signal(s, handler)
        for s in came:
            signal.raise_signal(s)


def begin_child(parent: int) -> None:
    """The first act of a child: leave signals to the parent, do not outlive it, and do not end with the screen."""
    sys.stdout, sys.stderr = screen.safe(sys.stdout), screen.safe(sys.stderr)
    for signum in STOPPING:
        signal.signal(signum, lambda *_: None)  # not SIG_IGN, which programs that an environment starts would inherit
    os.register_at_fork(after_in_child=lambda: [signal.signal(signum, signal.SIG_DFL) for signum in STOPPING])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    die_with_parent(parent)


def main() -> None:
    """Entry point of the worker process: file descriptor of the socket, process id of the learner."""
    begin_child(parent=int(sys.argv[2]))
    channel = Channel(socket.socket(fileno=int(sys.argv[1])))
    where, worker = "while starting", None
    try:
        ((_, payload),) = _first(channel)
        setup: Setup = pickle.loads(payload)
        sys.path[:] = setup.sys_path
        import cloudpickle

        from trainer.workers.plugins import register

        register(setup.specs)
        make_env = cloudpickle.loads(setup.make_env)
        where = "while constructing an environment"
        worker = Worker(channel, setup, make_env)
        where = ""
        worker.run()
    except Closed:
        return
    except Refused as refused:
        _send(channel, ("refused", str(refused)))
    except EnvironmentFailure as failure:
        _report(channel, str(failure), failure.trace)
    except BaseException as error:
        _report(channel, where, in_words(error))
    finally:
        if worker:
            worker.close()
    sys.exit(1)


def in_words(error: BaseException) -> str:
    """The traceback of an error that is being handled; of one with a true `in_plain_words`, such as a mistake in a file
    that an environment reads, its message.
    """
    return str(error) if getattr(error, "in_plain_words", False) else traceback.format_exc()


class Refused(Exception):
    """`make_env` gives what the engine does not take."""


class EnvironmentFailure(Exception):
    """An environment raised, or returned something that cannot be trained on."""

    def __init__(self, where: str, trace: str):
        super().__init__(where)
        self.trace = trace


class Worker:
    """Steps its environments one after another, in the order in which their actions arrive."""

    def __init__(self, channel: Channel, setup: Setup, make_env: Callable[[], Any]):
        self.channel, self.setup = channel, setup
        import cloudpickle

        self.envs = [_made(make_env) for _ in range(setup.num_envs)]
        if len({id(getattr(env, "unwrapped", env)) for env in self.envs}) < setup.num_envs:
            raise Refused("make_env gave the same environment twice; it has to make a new one whenever it is called.")
        from trainer.spaces import as_action, flat_space, flattener, layout  # an environment has imported Gymnasium

        try:
            layouts = {layout(env.observation_space, env.action_space) for env in self.envs}
        except ValueError as error:
            raise Refused(str(error)) from None
        if len(layouts) > 1:
            raise Refused("make_env gave environments of different spaces; all have to have the same.")
        spaces = (self.envs[0].observation_space, self.envs[0].action_space)
        told = ("spaces", spaces, _made_from(self.envs[0]))
        channel.send(MESSAGE, cloudpickle.dumps(told))  # spaces may be of classes of the user's script
        payload, fd = channel.receive_with_fd()
        self.shared = SharedArrays(pickle.loads(payload), fd)
        self.slots = slice(setup.first_env, setup.first_env + setup.num_envs)
        self.action = self.shared["action"][self.slots]
        self.obs = {k[4:]: v[self.slots] for k, v in self.shared.arrays.items() if k.startswith("obs/")}
        self.final_obs = {k[6:]: v[self.slots] for k, v in self.shared.arrays.items() if k.startswith("final/")}
        self.reward, self.terminated, self.truncated, self.step_s, self.doing = (
            self.shared[k][self.slots] for k in ("reward", "terminated", "truncated", "step_s", "doing"))
        self.as_action, self.flatten = as_action(spaces[1]), flattener(spaces[0])
        flat = flat_space(spaces[0])
        boxes = getattr(flat, "spaces", {"obs": flat})
        self.delicate = {k: box.dtype for k, box in boxes.items() if may_change(box.dtype)}
        self.returns = [0.0] * setup.num_envs
        self.lengths = [0] * setup.num_envs
        self.episodes = [episode for episode, _ in setup.replay] or [0] * setup.num_envs

    def run(self) -> None:
        """Until the learner closes the socket. Whatever an environment does wrong, leaving the interpreter included,
        ends this in an EnvironmentFailure that names it."""
        try:
            self._run()
        except (Closed, EnvironmentFailure):
            raise
        except BaseException as error:
            raise EnvironmentFailure(self._where(), in_words(error)) from None

    def close(self) -> None:
        """Let every environment close what it holds, whatever that raises."""
        for env in self.envs:
            try:
                env.close()
            except BaseException:
                traceback.print_exc()

    def _run(self) -> None:
        for e in range(len(self.envs)):
            self._reset(e, first=True)
            for action in self.setup.replay[e][1] if self.setup.replay else ():
                self.action[e] = action
                self._step(e)
                self.channel.send(MESSAGE, REPLAYED)
            self._announce([e])
        gc.freeze()  # what is there now stays, and need not be searched
        gc.set_threshold(COLLECT_EVERY)
        queue: deque[int] = deque()
        while True:
            for tag, payload in self.channel.receive():
                queue.extend(np.frombuffer(payload, "<u2").tolist())
            done: list[int] = []
            last = time.perf_counter()
            while queue:
                e = queue.popleft()
                self._step(e)
                done.append(e)
                now = time.perf_counter()
                if now - last > NOTIFY_EVERY_S or len(done) == self.setup.announced:
                    self._announce(done)
                    done, last = [], now
            if done:
                self._announce(done)

    def _announce(self, envs: list[int]) -> None:
        self.channel.send(STEP, np.array(envs, "<u2").tobytes())

    def _step(self, e: int) -> None:
        start = time.perf_counter()
        self.doing[e] = DOING.index("step")
        self.lengths[e] += 1
        answer = self.envs[e].step(self.as_action(self.action[e]))
        if not isinstance(answer, tuple) or len(answer) != 5:
            raise EnvironmentFailure(self._where(), f"step gave {counted(answer)}{STEP_GIVES}")
        obs, reward, terminated, truncated, info = answer
        if type(reward) is not float:
            try:
                reward = float(np.asarray(reward).item())
            except (TypeError, ValueError):
                raise EnvironmentFailure(self._where(), f"reward is {reward!r}, not a number.") from None
        if not abs(reward) <= LARGEST_REWARD:
            raise EnvironmentFailure(self._where(), f"reward is {reward}, not a finite number of single precision.")
        for name, flag in (("terminated", terminated), ("truncated", truncated)):
            if type(flag) is not bool and not is_flag(flag):
                raise EnvironmentFailure(self._where(), f"{name} is {flag!r}, not true or false.")
        self.returns[e] += reward
        self.reward[e], self.terminated[e], self.truncated[e] = reward, terminated, truncated
        if terminated or truncated:
            if not terminated:
                self._write(self.final_obs, e, obs)
            episode = {"return": self.returns[e], "length": self.lengths[e]}
            episode |= episode_figures(info)
            self.channel.send(MESSAGE, pickle.dumps(("episode", self.setup.first_env + e, episode)))
            self.episodes[e] += 1
            self._reset(e)
        else:
            self._write(self.obs, e, obs)
        self.step_s[e] = time.perf_counter() - start
        self.doing[e] = 0

    def _reset(self, e: int, first: bool = False) -> None:
        """Begin an episode. An environment is seeded once; or, to be able to repeat episodes, in each."""
        number = [self.setup.seed, self.setup.offset + self.setup.first_env + e]
        if self.setup.seed_episodes:
            number.append(self.episodes[e])
        seeded = first or self.setup.seed_episodes
        self.doing[e] = DOING.index("reset")
        answer = self.envs[e].reset(seed=int(np.random.SeedSequence(number).generate_state(1)[0]) if seeded else None)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise EnvironmentFailure(self._where(), f"reset gave {counted(answer)}{RESET_GIVES}")
        obs, _ = answer
        self.returns[e], self.lengths[e] = 0.0, 0
        self._write(self.obs, e, obs)
        self.doing[e] = 0

    def _write(self, target: dict[str, np.ndarray], e: int, obs: Any) -> None:
        """An observation into its slot. The learner, which sees a whole batch at a time, checks that it is finite."""
        if self.flatten:
            obs = self.flatten(obs)
        values = obs if isinstance(obs, dict) else {"obs": obs}
        for k, array in target.items():
            if k not in values:
                raise EnvironmentFailure(self._where(), f"the observation has no '{k}', which its space has.")
            value, shape = values[k], array.shape[1:]
            if (value.shape if type(value) is np.ndarray else np.shape(value)) != shape:
                raise EnvironmentFailure(self._where(), f"observation '{k}' has shape {np.shape(value)}, its space "
                                                        f"says {shape}.")
            if k in self.delicate and (problem := changed(k, self.delicate[k], value)):
                raise EnvironmentFailure(self._where(), problem)
            array[e] = value

    def _where(self) -> str:
        """The environment that is being stepped or reset, for messages."""
        for e in np.flatnonzero(self.doing):
            when = f"step {self.lengths[e]}" if DOING[self.doing[e]] == "step" else "reset"
            return f"environment {self.setup.first_env + e} at {when}"
        return "between two steps"


def _made(make_env: Callable[[], Any]) -> Any:
    """An environment. Refused for something else."""
    env = make_env()
    if hasattr(env, "single_observation_space"):
        raise Refused(f"make_env gave {env}, several environments in one: collect.num_workers=0 steps them in the "
                      "process that learns.")
    if not all(hasattr(env, name) for name in ("observation_space", "action_space", "reset", "step")):
        raise Refused(f"make_env gave {env!r}, which is no Gymnasium environment.")
    return env


def _made_from(env: Any) -> dict[str, Any] | None:
    """The `id` and `kwargs` that `gymnasium.make` was given, as plain values; None without them."""
    spec = getattr(env, "spec", None)
    try:
        return json.loads(json.dumps({"id": spec.id, "kwargs": spec.kwargs}, default=_as_plain))
    except (AttributeError, TypeError, ValueError):
        return None


def _as_plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.generic, np.ndarray)) else os.fspath(value)


def episode_figures(info: Any) -> dict[str, float]:
    """The figures of an episode that `info["metrics"]` holds; what is no number is left out."""
    metrics = info.get("metrics") if isinstance(info, dict) else None
    found = {}
    for key, value in metrics.items() if isinstance(metrics, dict) else ():
        try:
            found[str(key)] = float(np.asarray(value).item())
        except (TypeError, ValueError):
            pass
    return found


def _first(channel: Channel) -> list[tuple[bytes, bytes]]:
    """Wait until one whole message is there."""
    while not (messages := channel.receive()):
        pass
    return messages


def counted(answer: Any) -> str:
    return f"{len(answer)} values" if isinstance(answer, tuple) else f"a {type(answer).__name__}"


def _report(channel: Channel, where: str, trace: str) -> None:
    _send(channel, ("error", where, trace))


def _send(channel: Channel, message: tuple) -> None:
    try:
        channel.send(MESSAGE, pickle.dumps(message))
    except Closed:
        pass


def die_with_parent(parent: int) -> None:
    """Linux: be killed when the learner dies, even in the middle of a long step."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)


if __name__ == "__main__":
    main()
