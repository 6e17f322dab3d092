"""`rearrange doctor`: what is installed, what is missing, and the command that mends it, if one can; one line each.

Uses nothing but the standard library, and imports what it examines in processes of their own, so that it answers where
packages are missing, broken, or end their process. Exit status 0 when the default simulator has all that it needs.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from rearrange.command_line import requirements
from rearrange.command_line.requirements import Requirement
from rearrange.home import own_packages
from rearrange.home.errors import UserError

PYTHON = ">=3.11"
PROBE_S = 120.0  # a first import on a cold disk takes its time
MODULES = {"hydra-core": "hydra", "pillow": "PIL", "imageio-ffmpeg": "imageio_ffmpeg"}  # not called like their package
ANTLR = Requirement("antlr4-python3-runtime", "==4.9.*")  # hydra's; pddlpy after 0.3.3 replaces it
HABITAT = "0.3.3"  # of habitat-sim and habitat-lab
# habitat-lab pins 1.26.4, habitat-sim wants 2.0 at least: pip cannot satisfy both, but both run with all of these.
HABITAT_NUMPY = Requirement("numpy", ">=1.26.4,<2.4")
GET_HABITAT_SIM = "conda install habitat-sim withbullet headless -c conda-forge -c aihabitat-nightly"
GET_HABITAT_LAB = "pip install 'habitat-lab>=0.3.3,<0.4'"
GET_DATA = "python -m habitat_sim.utils.datasets_download --uids rearrange_task_assets --data-path"
GET_EGL = "sudo apt install libegl1 libgl1-mesa-dri"
DATA = {  # what a HAB episode needs -> its folder
    "ReplicaCAD": "replica_cad", "HAB episodes": "datasets/replica_cad/rearrange", "YCB objects": "objects/ycb",
    "Fetch": "robots/hab_fetch"}

_ADVICE = re.compile(r"pip install [-\w .=]+")  # in what a package says that cannot be imported

# What each probe runs; the last line that it prints is shown.
_PROBES = {
    "habitat_sim": "import habitat_sim as s; print(s.__version__, 'with' if s.built_with_bullet else 'WITHOUT', "
                   "'Bullet')",
    "habitat": "import habitat; import habitat.tasks.rearrange; print(habitat.__version__)",
    "ffmpeg": "import imageio_ffmpeg as f; print(f.get_ffmpeg_version())",
    "cuda": "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else torch.version.cuda)",
    "entry points": """
import json, os
from rearrange.home.settings.installed_parts import NETWORKS, ROBOTS, SCENARIOS, SKILLS
print(json.dumps([line for offered in (NETWORKS, SKILLS, SCENARIOS, ROBOTS) for line in offered.broken()]), flush=True)
os._exit(0)  # what was imported may print at its end
""",
    "compiled": "from rearrange.home.numba_cache import kept_in; print(kept_in() or '')",
    "egl": """
import ctypes
egl = ctypes.CDLL("libEGL.so.1")
egl.eglGetProcAddress.restype = ctypes.c_void_p
address = egl.eglGetProcAddress(b"eglQueryDevicesEXT")
count = ctypes.c_int(0)
found = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))(address)
found(0, None, ctypes.byref(count))
print(count.value)
""",
}


@dataclass(frozen=True)
class Finding:
    """One line. `needed`: by the default simulator. `mend`: a command, for what is not good."""

    good: bool
    name: str
    text: str
    mend: str = ""
    needed: bool = False


@dataclass(frozen=True)
class Answer:
    """How a probe ended: what it printed last, or why it failed."""

    good: bool
    text: str


def main(words: list[str]) -> int:
    """The command; returns its exit status."""
    if {"--help", "-h"} & set(words):
        print(HELP)
        return 0
    folder = _data_folder([word for word in words if word not in ("--cfg", "job")])
    if "--cfg" in words:
        print(f"data: {folder}")
        return 0
    findings = examine(Path(folder).expanduser())
    print(text(findings))
    return 0 if all(finding.good for finding in findings if finding.needed) else 1


def text(findings: list[Finding]) -> str:
    """The lines, those of the default simulator first, and the conclusion."""
    lines = []
    for title, needed in (("the program, with sim=mujoco", True), ("more", False)):
        lines += [title, *(_line(finding) for finding in findings if finding.needed == needed), ""]
    bad = [finding.name for finding in findings if finding.needed and not finding.good]
    conclusion = f"sim=mujoco cannot run: {', '.join(bad)}." if bad else "sim=mujoco has all that it needs."
    return "\n".join([*lines, conclusion])


def _line(finding: Finding) -> str:
    mark = "ok" if finding.good else "WRONG" if finding.needed else "-"
    mend = f"   mend: {finding.mend}" if finding.mend and not finding.good else ""
    return f"  {mark:<6}{finding.name:<16}{finding.text}{mend}"


def examine(data: Path) -> list[Finding]:
    """Everything, in the order in which it is shown. `data`: folder of habitat-lab's data."""
    python = _python()
    if not python.good:  # what the packages need depends on it
        return [python]
    needs = requirements.own()
    modules = [MODULES.get(need.package, need.package) for need in needs]
    code = {module: f"import {module}" for module in modules if _is_there(module)} | {
        name: _PROBES[name] for name, module in
        (("habitat_sim", "habitat_sim"), ("habitat", "habitat"), ("ffmpeg", "imageio_ffmpeg"), ("cuda", "torch"))
        if _is_there(module)}
    answers = probe(code | {name: _PROBES[name] for name in ("egl", "compiled", "entry points")})
    found = [python, *(_package(need, answers.get(module)) for need, module in zip(needs, modules)), _antlr()]
    found += [*_own_packages(), _compiled(answers["compiled"]), *_entry_points(answers["entry points"])]
    found += [_cuda(answers.get("cuda")), _ffmpeg(answers.get("ffmpeg")), _trimesh(), _egl(answers["egl"]),
              _habitat_sim(answers.get("habitat_sim")), _habitat_lab(answers.get("habitat"))]
    return [*found, *_clashes(), *_data(data)]


def probe(code: dict[str, str]) -> dict[str, Answer]:
    """Run each piece of Python in a process of its own, as many at once as there are cores. -P: a file queue.py in
    the folder where the user stands is not Python's. """
    answers, waiting = {}, list(code)
    running: dict[str, subprocess.Popen] = {}
    while waiting or running:
        while waiting and len(running) < (os.cpu_count() or 1):
            name = waiting.pop(0)
            running[name] = subprocess.Popen(
                [sys.executable, "-P", "-c", code[name]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, errors="replace")
        name = next(iter(running))
        answers[name] = _answer(running.pop(name))
    return answers


def _answer(process: subprocess.Popen) -> Answer:
    try:
        out, err = process.communicate(timeout=PROBE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return Answer(False, f"did not answer within {PROBE_S:.0f} s")
    if process.returncode < 0:
        return Answer(False, f"ended by signal {-process.returncode} while it was imported")
    if process.returncode:
        return Answer(False, _reason(err)[:300] or f"it ended Python with status {process.returncode} and said nothing")
    lines = [line.strip() for line in out.splitlines() if line.strip()]
    return Answer(True, lines[-1] if lines else "")


def _reason(err: str) -> str:
    """What stands after the last traceback, on one line; without one, the last line."""
    lines = [line for line in err.splitlines() if line.strip()]
    traced = [i for i, line in enumerate(lines) if line.startswith("  File ")]
    after = lines[traced[-1] + 1:] if traced else lines[-1:]
    while traced and after and after[0].startswith("   "):  # the line of code, and what underlines it
        after.pop(0)
    return " ".join(" ".join(after).split())


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # half installed
        return False


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    good = Requirement("python", PYTHON).is_met_by(version)
    mend = f"install Python {PYTHON.removeprefix('>=')} or newer, and make a new venv"
    return Finding(good, "python", version, mend, True)


def _package(need: Requirement, imported: Answer | None) -> Finding:
    version, mend = need.installed(), f"pip install '{need.words}'"
    if imported is None:
        return Finding(False, need.package, "not installed", mend, True)
    if version is not None and not need.is_met_by(version):
        return Finding(False, need.package, f"{version}, but {need.versions} is needed", mend, True)
    if not imported.good:
        said, own_advice = f"{version or 'there'}, does not import: {imported.text}", _ADVICE.search(imported.text)
        return Finding(False, need.package, said, own_advice[0] if own_advice else f"{mend} --force-reinstall", True)
    return Finding(True, need.package, version or "there", needed=True)


def _antlr() -> Finding:
    version = ANTLR.installed()
    good = version is not None and ANTLR.is_met_by(version)
    mend = "pip install pddlpy==0.3.3 antlr4-python3-runtime==4.9.3"
    return Finding(good, "antlr4", version or "not installed", mend, True)


def _own_packages() -> list[Finding]:
    """Those of our packages that something else of the same name keeps from being found."""
    found = []
    for name in ("rearrange", "configs", *own_packages.IMPORTED):
        if problem := own_packages.in_the_way(name) if name in own_packages.IMPORTED else None:
            found.append(Finding(False, name, problem, needed=True))
        elif others := _others_with(name):
            said = (f"{own_packages.ROOT / name} is also of the installed "
                    f"package{'s' * (len(others) > 1)} {', '.join(others)}")
            mend = f"pip uninstall {' '.join(others)}, and install rearrange again"
            found.append(Finding(False, name, said, mend, True))
        elif name == "configs" and not (file := own_packages.ROOT / "configs" / "ppo" / "paper.yaml").is_file():
            found.append(Finding(False, name, f"there is no {file}", "install rearrange again", True))
    return found or [Finding(True, "own packages", f"all found in {own_packages.ROOT}", needed=True)]


def _others_with(name: str) -> list[str]:
    """Other installed packages with a module of this name, in the folder where ours are."""
    owners = metadata.packages_distributions().get(name, [])
    return sorted({owner for owner in owners if owner != "rearrange"
                   and Path(str(metadata.distribution(owner).locate_file(name))).resolve() == own_packages.ROOT / name})


def _compiled(answer: Answer) -> Finding:
    if not answer.good:
        return Finding(False, "compiled code", answer.text, "pip install numba --force-reinstall", True)
    said = f"kept in {answer.text}" if answer.text else "no folder can be written in which it could be kept"
    return Finding(bool(answer.text), "compiled code", said, "export NUMBA_CACHE_DIR=<a folder that can be "
                                                             "written>", True)


def _entry_points(answer: Answer) -> list[Finding]:
    """What other packages offer, networks, skills, scenarios and robots, all of which was imported: a line for each
    that does not load."""
    broken = json.loads(answer.text or "[]") if answer.good else [answer.text]
    return [Finding(False, "entry point", said, "upgrade or uninstall that package") for said in broken] or [
        Finding(True, "entry points", "networks, skills, scenarios and robots of other packages load")]


def _cuda(answer: Answer | None) -> Finding:
    device = os.path.exists("/dev/nvidia0") or os.path.exists("/proc/driver/nvidia/version")
    if answer is None or not answer.good:
        return Finding(False, "CUDA", "not known: torch does not import", "pip install torch --force-reinstall")
    if answer.text not in ("None", "") and not answer.text[0].isdigit():
        return Finding(True, "CUDA", answer.text)
    if device:
        said = f"there is an NVIDIA device, but torch does not see it (built for CUDA {answer.text})"
        return Finding(False, "CUDA", said, "nvidia-smi (does the driver answer?); pip install torch --force-reinstall")
    return Finding(False, "CUDA", "no NVIDIA device: everything runs on the CPU")


def _ffmpeg(answer: Answer | None) -> Finding:
    good = answer is not None and answer.good
    own = os.environ.get("IMAGEIO_FFMPEG_EXE")
    if not good and own:
        return Finding(False, "ffmpeg", f"IMAGEIO_FFMPEG_EXE={own} does not run: no videos", "unset IMAGEIO_FFMPEG_EXE")
    mend = "pip install imageio-ffmpeg --force-reinstall"
    return Finding(good, "ffmpeg", answer.text if good else "not there: no videos", mend)


def _trimesh() -> Finding:
    version = Requirement("trimesh", "").installed()
    said = version or "not installed: no rearrange scenes export"
    return Finding(version is not None, "trimesh", said, "pip install 'trimesh>=4'")


def _egl(answer: Answer) -> Finding:
    good = answer.good and answer.text not in ("", "0")
    lacks = "no device" if answer.good else "no libEGL: habitat-sim cannot draw without a screen"
    return Finding(good, "EGL", f"devices: {answer.text}" if good else lacks, GET_EGL)


def _habitat_sim(answer: Answer | None) -> Finding:
    if answer is None:
        return Finding(False, "habitat-sim", "not installed: no sim=habitat", GET_HABITAT_SIM)
    good = answer.good and "WITHOUT" not in answer.text and _is_habitat(answer.text)
    said = answer.text if good else f"{answer.text}; {HABITAT} with Bullet is what was tested"
    return Finding(good, "habitat-sim", said, GET_HABITAT_SIM)


def _habitat_lab(answer: Answer | None) -> Finding:
    if answer is None:
        return Finding(False, "habitat-lab", "not installed: only for its own tasks on exported homes", GET_HABITAT_LAB)
    good = answer.good and _is_habitat(answer.text)
    said = answer.text if good else f"{answer.text}; {HABITAT} is what was tested"
    return Finding(good, "habitat-lab", said, GET_HABITAT_LAB)


def _is_habitat(version: str) -> bool:
    """0.3.3, or a package of it with its date in the last number, as 0.3.320260507."""
    return version.startswith(HABITAT)


def _clashes() -> list[Finding]:
    """What habitat-sim and habitat-lab ask for, and other versions of it are installed."""
    found, seen = [], set()
    for package in ("habitat-sim", "habitat-lab"):
        for need in requirements.of(package):
            need = HABITAT_NUMPY if need.package == "numpy" else need
            version = need.installed()
            if version is not None and not need.is_met_by(version) and need not in seen:
                seen.add(need)
                said = f"{version}, but {package} asks for {need.versions}"
                found.append(Finding(False, need.package, said, f"pip install '{need.words}'"))
    return found


def _data(folder: Path) -> list[Finding]:
    mend = f"{GET_DATA} {shlex.quote(str(folder))}"
    there = {name: (folder / place).is_dir() for name, place in DATA.items()}
    return [Finding(there[name], name, f"{'' if there[name] else 'not in '}{folder / place}", mend)
            for name, place in DATA.items()]


def _data_folder(words: list[str]) -> str:
    """The only setting, data=. It is read without Hydra and without our other packages, which may be what is
    missing."""
    folder = "data"
    for word in words:
        name, equals, folder = word.partition("=")
        if name != "data" or not equals:
            raise UserError(f"'{word}' is not a setting. Settings are data=; see 'rearrange doctor --help'.")
        if not folder:
            raise UserError(f"'{word}' has no value: write data=<folder>, or leave it out for data=data.")
    return folder


HELP = """\
usage: rearrange doctor [key=value ...]

Say what is installed, what is missing, and the command that mends it.

  rearrange doctor
  rearrange doctor data=../habitat-lab/data

One line for each package, device and data set: 'ok', 'WRONG' where sim=mujoco cannot run with it, '-' where
something optional is missing; what a command can mend names that command. Nothing is changed.
Exit status: 0 when sim=mujoco has all that it needs, 1 otherwise.

general:
  data=data                 where habitat-lab's data are looked for [path]"""
