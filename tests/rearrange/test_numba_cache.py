"""Where compiled code is kept when neither the package folder nor the home can be written."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rearrange.home import numba_cache
from rearrange.home.simulation.mujoco import compile_kernels
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
ONCE = "import rearrange.home.robot.motors"
TWICE = f"import subprocess, sys; {ONCE}; subprocess.run([sys.executable, '-P', '-c', {ONCE!r}], check=True)"


@pytest.fixture
def read_only(tmp_path):
    """A copy of the package and a home that cannot be written, not even by root, as the start of a command and its
    environment.
    """
    for name in ("rearrange", "skills", "planner", "trainer", "eval"):
        shutil.copytree(ROOT / name, tmp_path / "installed" / name,
                        ignore=shutil.ignore_patterns("__pycache__", "*.pt"))
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    without = []
    if os.geteuid() == 0:  # root ignores permissions
        if not shutil.which("setpriv"):
            pytest.skip("root ignores permissions, and there is no setpriv to take that from it")
        without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    folders = [tmp_path / "home", tmp_path / "installed",
               *(p for p in (tmp_path / "installed").rglob("*") if p.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    dropped = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONPYCACHEPREFIX")
    environment = {key: value for key, value in os.environ.items() if key not in dropped} | {
        "HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(tmp_path / "installed"),
        "OMP_NUM_THREADS": "1"}
    yield [*without, sys.executable, "-P", "-c"], environment
    for folder in folders:
        folder.chmod(0o755)


def run(read_only: tuple[list[str], dict[str, str]], code: str, **more: str) -> subprocess.CompletedProcess:
    start, environment = read_only
    return subprocess.run([*start, code], env=environment | more, capture_output=True, text=True, timeout=120)


def test_a_temporary_folder_is_taken_and_said_once(read_only, tmp_path):
    done = run(read_only, TWICE)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "tmp").iterdir()
    assert done.stderr.count("\n") == 1 and f"compiled code is kept in {folder}" in done.stderr
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and list(folder.rglob("*.nbi"))


@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME"])
def test_a_folder_that_is_asked_for_or_the_users_cache_is_taken_silently(read_only, tmp_path, variable):
    done = run(read_only, ONCE, **{variable: str(tmp_path / "asked")})
    assert done.returncode == 0 and not done.stderr and not list((tmp_path / "tmp").iterdir())
    assert list((tmp_path / "asked").rglob("*.nbi"))


def test_a_temporary_folder_that_others_can_write_is_not_trusted(monkeypatch, tmp_path):
    monkeypatch.setattr(numba_cache.tempfile, "tempdir", str(tmp_path))
    planted = tmp_path / f"rearrange-{os.getuid()}"
    planted.mkdir()
    planted.chmod(0o777)
    taken = numba_cache._temporary()
    assert taken is not None and taken != planted and stat.S_IMODE(taken.stat().st_mode) == 0o700
    shutil.rmtree(planted)
    (tmp_path / "elsewhere").mkdir()
    planted.symlink_to(tmp_path / "elsewhere")
    assert numba_cache._temporary() not in (None, planted)


def test_at_a_terminal_one_of_the_processes_that_compile_says_so(tmp_path):
    compiles = "from rearrange.home.numba_cache import njit; njit(lambda x: x + 1)(1); njit(lambda x: x + 2)(1); "
    both = f"{compiles}import subprocess, sys; subprocess.run([sys.executable, '-P', '-c', {compiles!r}], check=True)"
    for code, lines in ((both, 1), ("from rearrange.home.numba_cache import njit; njit(lambda x: x)", 0)):
        ours, theirs = pty.openpty()
        subprocess.run([sys.executable, "-P", "-c", code], stderr=theirs, check=True, timeout=120, cwd=ROOT,
                       env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)})
        os.close(theirs)
        try:
            said = os.read(ours, 10000).decode()
        except OSError:  # nothing was written
            said = ""
        os.close(ours)
        assert said.count(numba_cache.COMPILING) == lines == said.count("\n")


@pytest.mark.parametrize("status, asked", [(0, 2), (1, 4)])
def test_one_process_has_the_kernels_compiled_for_all_and_what_failed_is_tried_again(tmp_path, status, asked):
    """Two processes ask at the same time for two parts, whose compilers only note that they were started."""
    log = tmp_path / "asked"
    code = f"""
import subprocess, sys
from rearrange.home.simulation.mujoco import compile_kernels
def noting(command, **options):
    open({str(log)!r}, "a").write(command[-1] + "\\n")
    return start([sys.executable, "-c", "raise SystemExit({status})"], **options)
start, subprocess.Popen = subprocess.Popen, noting
compile_kernels.compile_once(compile_kernels.HOME)
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    both = [subprocess.Popen([sys.executable, "-P", "-c", code], env=environment) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    asked_for = [line.split()[3] for line in log.read_text().splitlines()]
    assert asked_for == ["depth", "first_step"] * (asked // 2)
    assert len(list(tmp_path.glob("compiled_*"))) == (status == 0)


def test_a_folder_that_knows_no_locks_only_takes_longer(tmp_path, monkeypatch):
    def no_locks(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(compile_kernels, "kept_in", lambda: tmp_path)
    monkeypatch.setattr(compile_kernels.fcntl, "flock", no_locks)
    compile_kernels.compile_once.__wrapped__(compile_kernels.HOME)
    assert not list(tmp_path.glob("compiled_*"))


def test_an_interrupt_ends_what_compiles_without_a_word_of_it(tmp_path):
    begun = tmp_path / "begun"
    code = f"""
import subprocess, sys
from rearrange.home.simulation.mujoco import compile_kernels
endless = "import os, pathlib, signal; pathlib.Path({str(begun)!r}).write_text(str(os.getpid())); signal.pause()"
def slow(command, **options):
    return start([sys.executable, "-c", endless], **options)
start, subprocess.Popen = subprocess.Popen, slow
compile_kernels.compile_once(compile_kernels.HOME[:1])
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-P", "-c", code], env=environment, stderr=subprocess.PIPE, text=True,
                               start_new_session=True)
    until(lambda: begun.is_file() and begun.read_text(), "the child", process=process)
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate()[1].count("KeyboardInterrupt") == 1  # its own
    child = int(begun.read_text())
    until(lambda: not Path(f"/proc/{child}").exists(), "the end of the child")


def test_here_it_is_kept_where_it_can_be_written():
    assert numba_cache.kept_in() is not None


def test_all_compiled_code_finds_its_place_first():
    """Nobody imports numba but `rearrange.home.numba_cache`, which chooses the folder."""
    files = [file for name in ("rearrange", "skills", "planner", "trainer", "eval")
             for file in (ROOT / name).rglob("*.py")]
    importing = [file.name for file in files if "import numba" in (text := file.read_text()) or "from numba" in text]
    assert importing == ["numba_cache.py"]
