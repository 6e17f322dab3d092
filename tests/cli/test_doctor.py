"""`rearrange doctor`: answers whatever is missing or broken, and says what mends it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rearrange.command_line import doctor, requirements
from rearrange.command_line.cli import main
from rearrange.command_line.requirements import Requirement

HOME = Path(__file__).resolve().parents[2]


def answered(monkeypatch, broken: dict[str, doctor.Answer]):
    """Instead of processes: every probe answers well, but for those in `broken`."""
    good = {"egl": "1", "cuda": "None", "habitat_sim": "0.3.3 with Bullet", "habitat": "0.3.3", "ffmpeg": "7.0",
            "compiled": "/cache"}
    monkeypatch.setattr(doctor, "probe", lambda code: {
        name: broken.get(name, doctor.Answer(True, good.get(name, ""))) for name in code})


def lines(out: str) -> dict[str, str]:
    return {line.split()[1]: line for line in out.splitlines() if line.startswith("  ")}


def test_here_the_default_simulator_has_all_it_needs(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    answered(monkeypatch, {})
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "sim=mujoco has all that it needs." in out and "WRONG" not in out
    assert {need.package for need in requirements.own()} <= set(lines(out))
    assert "rearrange_task_assets" in lines(out)["ReplicaCAD"] and not list(tmp_path.iterdir())


def test_a_package_that_does_not_import_is_wrong(monkeypatch, capsys):
    answered(monkeypatch, {"numba": doctor.Answer(False, "ImportError: Numba needs NumPy 2.3 or less")})
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "WRONG" in lines(out)["numba"] and "Numba needs NumPy" in out and "pip install 'numba" in out
    assert out.strip().endswith("sim=mujoco cannot run: numba.")


TORN_MUJOCO = """The 'mujoco' package is installed, but its core bindings ('mujoco-core') are missing or corrupted.
Repair your environment with:\n  pip install --force-reinstall --no-deps mujoco mujoco-core mujoco-studio"""


def test_mujoco_4_over_3_is_mended_as_mujoco_says(monkeypatch, capsys):
    answered(monkeypatch, {"mujoco": doctor.Answer(False, " ".join(f"ImportError: {TORN_MUJOCO}".split()))})
    assert main(["doctor"]) == 1
    said = lines(capsys.readouterr().out)["mujoco"]
    assert said.endswith("mend: pip install --force-reinstall --no-deps mujoco mujoco-core mujoco-studio")


def test_mujoco_4_over_3_is_one_sentence(tmp_path):
    (tmp_path / "mujoco.py").write_text(f'raise ImportError("""{TORN_MUJOCO}""")')
    done = subprocess.run([sys.executable, "-m", "rearrange", "eval", "skill=pick", "episodes=1", "output=out"],
                          cwd=tmp_path, env=os.environ | {"PYTHONPATH": f"{tmp_path}:{HOME}"}, capture_output=True,
                          text=True)
    assert (done.returncode, done.stderr) == (1, f"rearrange eval: {' '.join(TORN_MUJOCO.split())}\n")


def test_what_habitat_lacks_is_not_wrong_for_the_default_simulator(monkeypatch, capsys):
    answered(monkeypatch, {"egl": doctor.Answer(False, "OSError: libEGL.so.1")})
    there, without = doctor._is_there, ("habitat_sim", "habitat")
    monkeypatch.setattr(doctor, "_is_there", lambda module: there(module) and module not in without)
    version = Requirement.installed
    monkeypatch.setattr(Requirement, "installed", lambda need: None if need.package == "trimesh" else version(need))
    assert main(["doctor"]) == 0
    found = lines(capsys.readouterr().out)
    mends = {"EGL": "apt install", "habitat-sim": "conda install", "habitat-lab": "pip install", "trimesh": "pip"}
    for name, mend in mends.items():
        assert found[name].strip().startswith("-") and mend in found[name]


def test_a_habitat_that_is_there_is_judged(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "_is_there", lambda module: True)
    answered(monkeypatch, {})
    assert main(["doctor"]) == 0
    found = lines(capsys.readouterr().out)
    assert found["habitat-sim"].split()[0] == found["habitat-lab"].split()[0] == "ok"
    answered(monkeypatch, {"habitat_sim": doctor.Answer(True, "0.3.3 WITHOUT Bullet"),
                           "habitat": doctor.Answer(True, "0.2.5")})
    assert main(["doctor"]) == 0
    found = lines(capsys.readouterr().out)
    assert "withbullet" in found["habitat-sim"] and "0.3.3 is what was tested" in found["habitat-lab"]


def test_clashes_are_said(monkeypatch):
    asked = {"habitat-lab": [Requirement("numpy", "==1.26.4"), Requirement("gym", "<0.23.1,>=0.22.0")],
             "habitat-sim": [Requirement("numpy", ">=2.0.0,<2.4"), Requirement("numba", ">=0.60.0")]}
    versions = {"numpy": "2.3.5", "gym": "0.26.2", "numba": "0.68.1"}
    monkeypatch.setattr(requirements, "of", lambda package: asked.get(package, []))
    monkeypatch.setattr(Requirement, "installed", lambda need: versions[need.package])
    (gym,) = doctor._clashes()
    assert gym.name == "gym" and "0.26.2, but habitat-lab asks for <0.23.1,>=0.22.0" in gym.text
    assert gym.mend == "pip install 'gym<0.23.1,>=0.22.0'"
    versions |= {"numpy": "2.4.6", "gym": "0.23.0"}
    assert [clash.mend
            for clash in doctor._clashes()] == ["pip install 'numpy>=1.26.4,<2.4'"], "one command that suits both"


def test_data_are_looked_for_where_it_is_told(monkeypatch, capsys, tmp_path):
    answered(monkeypatch, {})
    (tmp_path / "replica_cad").mkdir()
    assert main(["doctor", f"data={tmp_path}"]) == 0
    found = lines(capsys.readouterr().out)
    assert found["ReplicaCAD"].split()[0] == "ok" and found["YCB"].split()[0] == "-"


def test_an_entry_point_that_does_not_load_is_one_sentence(tmp_path):
    """Of packages that are really installed, as the probe finds them in a process of its own."""
    place = tmp_path / "shed-1.0.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: shed\nVersion: 1.0\n")
    (tmp_path / "shed.py").write_text("import atexit\nclass Net: pass\nclass Push: pass\n"
                                      "atexit.register(print, 'bye')\n")
    (tmp_path / "rotten.py").write_text("raise ImportError('no libGL\\nat all')\n")
    (tmp_path / "task.yaml").write_text("name: task\n")
    (place / "entry_points.txt").write_text(
        "[rearrange.policies]\nnet = shed:Net\nold = shed:Gone\n[rearrange.skills]\npush = shed:Push\nbad = rotten:X\n"
        "[rearrange.scenarios]\ntask = shed:task.yaml\nlost = shed:lost.yaml\n[rearrange.robots]\narm = shed:Nothing\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); " + doctor._PROBES["entry points"].lstrip()
    found = doctor._entry_points(doctor.probe({"entry points": code})["entry points"])
    said = [finding.text for finding in found]
    assert [words.split(":")[0] for words in said] == ["network of the package shed", "skill of the package shed",
                                                       "scenario of the package shed", "robot of the package shed"]
    assert "old cannot be loaded: AttributeError" in said[0]
    assert "bad cannot be loaded: ImportError: no libGL" in said[1]
    assert "lost cannot be read: there is no file lost.yaml" in said[2]
    assert not any("\n" in words or words.endswith(".") for words in said) and not any(each.needed for each in found)
    (place / "entry_points.txt").write_text("[rearrange.policies]\nnet = shed:Net\n")
    (fine,) = doctor._entry_points(doctor.probe({"entry points": code})["entry points"])
    assert fine.good


def test_probes_survive_what_they_import():
    answers = doctor.probe({
        "good": "print('noise'); print('1.2')", "raises": "raise ImportError('no libGL')",
        "crashes": "import os; os.abort()", "silent": "pass"})
    assert answers["good"] == doctor.Answer(True, "1.2") and answers["silent"] == doctor.Answer(True, "")
    assert answers["raises"] == doctor.Answer(False, "ImportError: no libGL")
    assert not answers["crashes"].good and "signal 6" in answers["crashes"].text


def test_probes_say_why_on_one_line(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "queue.py").write_text("raise SystemExit('of the user')")
    answers = doctor.probe(
        {"silent": "import os; os._exit(3)",
         "two": "raise ImportError('Numba needs NumPy 2.3 or less.\\nGot NumPy 2.4.')", "chained": "try:\n  1 / "
         "0\nexcept Exception as e:\n  raise OSError('late') from e", "queue": "import queue; print('ours')"})
    assert answers["silent"] == doctor.Answer(False, "it ended Python with status 3 and said nothing")
    assert answers["two"].text == "ImportError: Numba needs NumPy 2.3 or less. Got NumPy 2.4."
    assert answers["chained"].text == "OSError: late" and answers["queue"] == doctor.Answer(True, "ours")


def test_what_is_said_of_ffmpeg_habitat_lab_and_data(monkeypatch):
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/nonexistent")
    found = doctor._ffmpeg(doctor.Answer(False, "FileNotFoundError"))
    assert "IMAGEIO_FFMPEG_EXE=/nonexistent" in found.text and found.mend == "unset IMAGEIO_FFMPEG_EXE"
    assert "no sim=habitat" not in doctor._habitat_lab(None).text
    assert doctor._data(Path("my data;rm"))[0].mend.endswith(" 'my data;rm'")


def run_bare(tmp_path, *words, path=()):
    """In an interpreter without any package."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([*map(str, path), str(HOME)])}
    command = [sys._base_executable, "-S", "-m", "rearrange", "doctor", *words]
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)


def test_with_nothing_installed_it_answers(tmp_path):
    done = run_bare(tmp_path)
    found = lines(done.stdout)
    assert done.returncode == 1 and not done.stderr
    assert "pip install 'torch>=" in found["torch"] and "WRONG" in found["hydra-core"]
    assert found["python"].split()[0] == "ok"
    assert run_bare(tmp_path, "--help").returncode == 0


def test_with_a_broken_torch_it_answers(tmp_path):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "torch.py").write_text("raise OSError('libtorch_cpu.so: undefined symbol')")
    done = run_bare(tmp_path, path=[tmp_path / "broken"])
    assert done.returncode == 1 and not done.stderr
    assert "does not import: OSError: libtorch_cpu.so: undefined symbol" in lines(done.stdout)["torch"]


def test_an_old_python_is_the_only_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 9, 1))
    assert doctor.main([]) == 1
    assert "install Python 3.11 or newer" in capsys.readouterr().out


def test_a_mistyped_setting_is_one_sentence(capsys):
    assert main(["doctor", "dta=x"]) == 2
    assert "data=" in capsys.readouterr().err
    assert main(["doctor", "--cfg", "job"]) == 0 and capsys.readouterr().out == "data: data\n"


@pytest.mark.parametrize("versions, version, met", [
    (">=2.8,<2.14", "2.13.0+cpu", True), (">=2.8,<2.14", "2.14.0", False), (">=2.8,<2.14", "2.8", True),
    ("==0.3.3", "0.3.3", True), ("==0.3.3", "0.4.5", False), (">=3.17,!=4.0.0,<5", "4.0.0", False),
    (">=3.17,!=4.0.0,<5", "4.0.1", True), ("", "1", True), ("==4.9.*", "4.9.3", True), ("==4.9.*", "4.13.2", False),
    ("~=1.4.2", "1.4.9", True), ("~=1.4.2", "1.5", False), (">=1.0", "1.0rc1", True)])
def test_versions(versions, version, met):
    assert Requirement("package", versions).is_met_by(version) is met


def test_requirements_are_read_from_what_pip_writes():
    lines = ["torch (>=2.8)", "numpy>=1.26", "a[x]==1 ; extra == 'test'", "gym<0.23.1,>=0.22.0"]
    assert requirements._parsed(lines) == [
        Requirement("torch", ">=2.8"), Requirement("numpy", ">=1.26"), Requirement("gym", "<0.23.1,>=0.22.0")]


def test_a_place_for_compiled_code_is_needed(monkeypatch, capsys):
    answered(monkeypatch, {"compiled": doctor.Answer(True, "")})
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "no folder can be written" in out and "NUMBA_CACHE_DIR" in out
