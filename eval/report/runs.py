"""What `rearrange report` reads: the directories that `rearrange train` and `rearrange eval` leave.

A directory with `metrics.json` is an evaluation, of a skill or of a scenario; one with `metrics.csv` is a training run.
"""

from __future__ import annotations

import csv
import io
import math
import shlex
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from eval.protocol import protocol
from rearrange.command_line.runs.run_directory import read_status
from rearrange.command_line.runs.run_directory import runs as runs_of
from rearrange.home.errors import UserError
from rearrange.home.files import read_json, read_text
from rearrange.home.settings.yaml_files import check_yaml
from trainer.setting_rules import leaves

MOST_TABLE = 1 << 26  # bytes of episodes.csv or metrics.csv: some 300,000 episodes
RUNNING = "running"  # the status of a run whose command is under way
MOST_TEXT = 1 << 24  # of the other files of a run

SHIPPED, SHIPPED_IN = "pretrained (shipped)", ("skills", "pretrained")
# Settings that do not make two runs different experiments.
OWN_KEYS = {"name", "output", "resume", "requeue", "seed", "logger"}


@dataclass(frozen=True)
class About:
    """Where a run lies and how it was made."""

    path: Path
    name: str
    command: str  # as it was typed
    typed: tuple[tuple[str, str], ...]  # its settings
    commit: str  # "" if the code did not come from a git checkout
    changed: bool  # the code had changes that were not committed
    status: str  # running, finished, stopped, failed, died or unknown
    ended: str  # date and time, "" if unknown
    settings: str  # config.yaml
    plan: str  # plan.txt of a scenario


@dataclass(frozen=True)
class Evaluation:
    """One evaluation. A column may be missing in some episodes; videos are by file name.

    substitution, subtasks: the figures of other ways to run a scenario, and of its sub-tasks, where they were measured.
    """

    about: About
    what: str
    is_scenario: bool
    figures: dict[str, Any]
    columns: tuple[str, ...]
    episodes: tuple[dict[str, str], ...]
    videos: dict[str, Path]
    substitution: dict[str, dict[str, Any]] = field(default_factory=dict)
    subtasks: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def protocol(self) -> str:
        """The rules: of a scenario those of the planner and what makes it another task; else where episodes begin.

        Older files do not say it.
        """
        if self.is_scenario:
            changed, problem = list(self.figures.get("changed") or ()), self.figures.get("problem")
            if problem not in (None, self.what) and not any(str(word).startswith("hab.problem=") for word in changed):
                changed.append(f"hab.problem={problem}")
            return ", ".join(map(str, filter(None, [self.figures.get("protocol"), *changed])))
        env = self.figures.get("env")
        try:
            return str(self.figures.get("protocol") or (protocol(self.what, env) if isinstance(env, dict) else ""))
        except (UserError, TypeError):  # of a skill that is gone, or of figures that somebody wrote
            return ""

    @property
    def agent(self) -> str:
        """Who acted, and whether it was all done by policies that come with the package, on whichever machine."""
        agent, skills = str(self.figures.get("agent") or "policy"), self.figures.get("skills")
        files = list(skills.values()) if isinstance(skills, dict) else [self.figures.get("checkpoint")]
        if not files or not all(isinstance(file, str) and Path(file).parts[-3:-1] == SHIPPED_IN for file in files):
            return agent
        return SHIPPED if agent in ("policy", "pretrained") else f"{agent}, {SHIPPED}"


@dataclass(frozen=True)
class Training:
    """One training run: a row of finite figures for each logged step, in order of steps."""

    about: About
    skill: str
    config: dict[str, Any]
    rows: tuple[dict[str, float], ...]

    @property
    def what(self) -> str:
        """What was trained for, as an evaluation calls it."""
        return self.skill

    @property
    def is_scenario(self) -> bool:
        """Whether one policy learned a whole scenario."""
        return bool(self.config.get("hab"))


Found = Evaluation | Training


def read_all(paths: list[str], problems: list[str] | None = None) -> list[Found]:
    """The runs at `paths`: run directories, or directories with runs below them. Every path must give something.

    What is wrong with a run below a directory is added to `problems`.
    """
    problems = [] if problems is None else problems
    found: dict[Path, Found] = {}  # by their real place, so that a run that is named twice counts once
    for text in paths:
        path = Path(text)
        if not path.is_dir():
            problem = "is not a directory" if path.exists() else "does not exist"
            raise UserError(f"{path} {problem}; name a directory that rearrange train or rearrange eval wrote.")
        if _kind(path):
            found.setdefault(path.resolve(), read(path))
            continue
        if not (below := runs_below(path)):
            raise UserError(_nothing_in(path))
        for run in read_some(below, problems):
            found.setdefault(run.about.path.resolve(), run)
    return list(found.values())


def read_some(paths: list[Path], problems: list[str]) -> list[Found]:
    """Those of the runs that can be read; what is wrong with the others is added to `problems`."""
    found = []
    for path in paths:
        try:
            found.append(read(path))
        except UserError as error:
            problems.append(str(error))
    return found


def runs_below(path: Path) -> list[Path]:
    """Directories of evaluations and training runs with figures, at any depth, oldest first; links are left out."""
    files = [file for name in ("metrics.json", "metrics.csv") for file in path.rglob(name)]
    return sorted({f.parent for f in files if not f.parent.is_symlink() and _kind(f.parent)}, key=_age)


def newest(output: Path, problems: list[str] | None = None) -> list[Path]:
    """The newest evaluation of each task, agent and protocol; the newest training of each skill with its other seeds.

    An evaluation that cannot be read is added to `problems`, and an older one counts.
    """
    problems = [] if problems is None else problems
    chosen: dict[tuple[str, str, str], Path] = {}
    evaluations = read_some([path for path in runs_below(output / "eval") if _kind(path) == "eval"], problems)
    # A finished evaluation wins over one that is running or was interrupted.
    for run in sorted(evaluations, key=lambda run: run.about.status != RUNNING and not run.figures.get("interrupted")):
        path = run.about.path
        chosen[path.parent.name, run.agent, run.protocol] = path  # oldest first: newer wins
    problems += [f"{path} is still running: its figures come at its end." for path in runs_of(output, "eval")
                 if not _kind(path) and read_status(path)["status"] == RUNNING]
    trained = [path for path in runs_below(output / "train") if _kind(path) == "train"]
    of_skill = {path.parent.name: _experiment(path) for path in trained}  # again the newest wins
    siblings = [path for path in trained if _experiment(path) == of_skill[path.parent.name]]
    if not chosen and not siblings:
        raise UserError(f"there is no run with figures in {output}/. Start one with: rearrange "
                        "train experiment=quickstart")
    return [*chosen.values(), *siblings]


def _experiment(path: Path) -> tuple[tuple[str, str], ...]:
    return telling(parsed(_text(path / "config.yaml")))


def read(path: Path) -> Found:
    """The run in a directory; UserError naming the file if it is not what it should be."""
    return _evaluation(path) if _kind(path) == "eval" else _training(path)


def _kind(path: Path) -> str:
    """`eval`, `train`, or "" where a directory holds neither. Measurements of speed also write a metrics.json."""
    if (path / "metrics.json").is_file() and path.parent.parent.name != "bench":
        return "eval"
    return "train" if (path / "metrics.csv").is_file() else ""


def _nothing_in(path: Path) -> str:
    if (path / "config.yaml").exists():
        return f"{path} has no figures yet: neither metrics.json nor metrics.csv. Let its command finish, or repeat it."
    return (f"{path} is not a run: it holds neither metrics.json of an evaluation nor metrics.csv of a training run, "
            "nor does a directory below it.")


def _age(path: Path) -> tuple[float, str]:
    file = path / "config.yaml"
    return (file if file.exists() else path).stat().st_mtime, str(path)


def _evaluation(path: Path) -> Evaluation:
    figures = _json(path / "metrics.json")
    scenario = figures.get("scenario")
    what = scenario or figures.get("nav") or figures.get("skill")
    n, success = figures.get("episodes"), figures.get("success")
    if n == 0 and (solved := figures.get("began_solved")):
        raise UserError(f"{path} has no figures: all of its {solved} episodes began solved. Leave it out, or "
                        "evaluate others.")
    if not what or not isinstance(n, int) or n < 1 or not _is_share(success):
        raise UserError(f"{path / 'metrics.json'} is not that of an evaluation: it must hold skill, nav or scenario, "
                        "episodes (at least 1) and success (0 to 1). Repeat rearrange eval.")
    if wrong := _odd_figure(figures):
        raise UserError(f"{path / 'metrics.json'} is not that of an evaluation: {wrong} is "
                        f"{str(figures[wrong])[:80]!r}. Repeat rearrange eval.")
    columns, episodes = _episodes(path / "episodes.csv")
    videos = {file.name: file for file in sorted((path / "videos").glob("*.mp4"))
              if file.is_file() and not file.name.startswith(".")}
    about = _about(path, "eval")
    if figures.get("interrupted"):
        finished = n + (figures.get("began_solved") or 0)
        about = replace(about, status=f"{about.status}, only {finished} of {figures.get('episodes_asked')} episodes")
    return Evaluation(about, str(what), scenario is not None, figures, columns, episodes, videos,
                      _rows(path / "substitution.json"), _rows(path / "subtasks.json"))


def _rows(file: Path) -> dict[str, dict[str, Any]]:
    """A table of figures by name, of those that have episodes; nothing if the file is missing."""
    rows = _json(file) if file.exists() else {}
    rows = {name: row for name, row in rows.items() if not (isinstance(row, dict) and row.get("episodes") == 0)}
    for name, row in rows.items():
        if not (isinstance(row, dict) and isinstance(row.get("episodes"), int) and row["episodes"] >= 1
                and _is_share(row.get("success")) and not _odd_figure(row)):
            raise UserError(f"{file} is not that of an evaluation: {name[:80]!r} needs episodes (at least 1) and "
                            "success (0 to 1). Repeat rearrange eval.")
    return rows


def _odd_figure(figures: dict[str, Any]) -> str | None:
    """The name of a figure of a kind that evaluations do not write; None where all are fine or missing."""
    rows = figures.get("interactions") or []
    right = {
        "success_interval_95": _is_interval(figures.get("success_interval_95")),
        **{name: figures.get(name) is None or _is_share(figures[name])
           for name in ("success_015", "success_stable", "goal_share", "success_once", "success_at_end")},
        **{f"{name}_interval_95": _is_interval(figures.get(f"{name}_interval_95"))
           for name in ("success_015", "success_stable")},
        **{name: figures.get(name) is None or _is_number(figures[name])
           for name in ("mean_steps", "mean_disturbed_objects", "mean_driven_m", "mean_hand_path_m",
                        "began_solved", "began_solved_success",
                        "began_solved_spl")},
        "changed": figures.get("changed") is None or isinstance(figures["changed"], list),
        "interactions": isinstance(rows, list) and all(
            isinstance(row, dict) and "name" in row and (row.get("success") is None or _is_share(row["success"]))
            and _is_interval(row.get("interval_95")) for row in rows),
    }
    for name in ("failures", "ends"):
        shares = figures.get(name) or {}
        right[name] = isinstance(shares, dict) and all(map(_is_share, shares.values()))
    return next((name for name, fine in right.items() if not fine), None)


def _is_interval(value: Any) -> bool:
    return value is None or isinstance(value, list) and len(value) == 2 and all(map(_is_number, value))


def _episodes(file: Path) -> tuple[tuple[str, ...], tuple[dict[str, str], ...]]:
    """Header and rows of episodes.csv; nothing if the file is missing. `failure` is called reason, as in scenarios."""
    try:
        rows = list(csv.reader(_lines(file)))
    except FileNotFoundError:
        return (), ()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{file} cannot be read: {_why(error)}.") from error
    if not rows:
        return (), ()
    header = ["reason" if name == "failure" and "reason" not in rows[0] else name for name in rows[0]]
    return tuple(header), tuple(dict(zip(header, row, strict=False)) for row in rows[1:] if row)


def _training(path: Path) -> Training:
    file = path / "metrics.csv"
    try:
        rows = [_numbers(row) for row in csv.DictReader(_lines(file))]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{file} cannot be read: {_why(error)}.") from error
    rows = sorted((row for row in rows if "step" in row), key=lambda row: row["step"])
    if not rows:
        raise UserError(f"{file} holds no row with a step. Let the training run log something, or leave it out.")
    about = _about(path, "train")
    config = parsed(about.settings)
    skill = config.get("nav") or config.get("skill")
    name = skill.get("name") if isinstance(skill, dict) else None
    return Training(about, str(name or path.resolve().parent.name), config, tuple(rows))


def _numbers(row: dict[str, Any]) -> dict[str, float]:
    """The finite numbers of a row."""
    found = {}
    for key, text in row.items():
        try:
            value = float(text)
        except (TypeError, ValueError):  # an empty field, or a line that is still being written
            continue
        if math.isfinite(value):
            found[key] = value
    return found


def _about(path: Path, command: str) -> About:
    typed = parsed(_text(path / "overrides.yaml"))
    words = [str(word) for word in typed] if isinstance(typed, list) else []
    git = _text(path / "git.txt").split()
    status = read_status(path)
    when = status.get("time")
    ended = time.strftime("%Y-%m-%d %H:%M", time.localtime(when)) if _is_number(when) and 0 < when < 1e11 else ""
    return About(path=path, name=path.resolve().name, command=shlex.join(["rearrange", command, *words]),
                 typed=tuple((word.partition("=")[0], word.partition("=")[2]) for word in words),
                 commit=git[0] if git else "", changed=bool(_text(path / "git.diff").strip()), status=status["status"],
                 ended=ended, settings=_text(path / "config.yaml"), plan=_text(path / "plan.txt"))


def _text(file: Path) -> str:
    try:
        return read_text(file, MOST_TEXT, errors="replace")
    except OSError:
        return ""


def _lines(file: Path) -> io.StringIO:
    """A table of figures, for the csv reader."""
    return io.StringIO(read_text(file, MOST_TABLE), newline="")


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error).splitlines()[0]


def parsed(text: str) -> Any:
    """YAML as plain values; an empty mapping where it is none, since a report can do without."""
    import yaml

    try:
        check_yaml(text)
        return yaml.safe_load(text) or {}
    except (yaml.YAMLError, ValueError):
        return {}


def _json(file: Path) -> dict[str, Any]:
    try:
        content = read_json(file)
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {_why(error)}.") from error
    if not isinstance(content, dict):
        raise UserError(f"{file} cannot be read: it holds no mapping of names to figures.")
    return content


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def texts(config: Any) -> dict[str, str]:
    """All settings by their full names, as texts."""
    return {key: str(value) for key, value in leaves(config)} if isinstance(config, dict) else {}


def same_settings(run: Training) -> tuple[tuple[str, str], ...]:
    """Equal for training runs that differ in their seed and name only."""
    return telling(run.config)


def telling(config: Any) -> tuple[tuple[str, str], ...]:
    """The settings that make a run another experiment; its seed and name do not."""
    return tuple((key, value) for key, value in texts(config).items() if key.split(".")[0] not in OWN_KEYS)
