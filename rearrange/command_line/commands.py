"""What the commands do, once the command line has been checked: each asks the part that does it.

`rearrange.command_line.cli` imports this module last; everything here may import torch and the simulator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rearrange.home.simulation.mujoco.compile_kernels import HOME, compile_once

compile_once(HOME)  # in several processes, before the imports below compile in this one what is not there yet

from eval.skill_command import evaluate_skill, recorded_skill
from eval.train_command import train
from rearrange.env.registration import register_envs
from rearrange.home.errors import UserError
from rearrange.home.files import may_be_written
from rearrange.home.settings.remote import RemoteError

if TYPE_CHECKING:
    from rearrange.command_line.composition import options as of
    from rearrange.command_line.runs.run_directory import Run
    from trainer.logs.progress import Progress

__all__ = ["train"]

register_envs()  # a policy may be of any environment that `gymnasium.make` knows


def evaluate(options: of.EvalOptions, run: Run) -> dict[str, float]:
    """`rearrange eval`: success over many episodes, metrics.json, episodes.csv and videos."""
    with _failures_told(run):
        if options.hab:
            from eval.scenario import command as hab_command

            return hab_command.evaluate(options, run)
        return evaluate_skill(options, run)


@contextmanager
def _failures_told(run: Run) -> Iterator[None]:
    """End a run with one sentence where a process, a server or a video fails."""
    from eval.processes import ProcessDied
    from eval.video import VideoError
    from trainer.errors import RankError

    try:
        yield
    except (ProcessDied, RemoteError, VideoError, RankError) as error:
        run.log(str(error))
        if not getattr(error, "told_elsewhere", False):
            print(f"rearrange {run.settings.command}: {error}", file=sys.stderr)
        run.finish("failed")
        raise SystemExit(1) from None


def record(options: of.RecordOptions) -> int:
    """`rearrange record`: episodes as a data set, or the check that a recording replays; the exit status."""
    from eval.recording.record import record as record_all

    if options.replay is None:
        return record_all(options, recorded_skill)
    from eval.recording.replay import replay, said

    folder = Path(options.replay)
    results = replay(folder, options.episodes, options.workers, options.choices.get("skill"), options.sim.robot)
    print("\n".join(said(results, folder)))
    return int(not results or any(result.frame is not None for result in results))


def view(options: of.ViewOptions) -> int:
    """`rearrange view`: until Ctrl-C."""
    from eval.view.server import require_package

    require_package()
    from eval.view.viewer import view as look

    look(options, recorded_skill)
    return 0


def serve(options: of.ServeOptions) -> None:
    """`rearrange serve`: until Ctrl-C."""
    from eval.remote.serving import run

    run(options)


def tools(options: of.ToolsOptions, run: Run) -> dict[str, float]:
    """`rearrange tools`: until the client goes."""
    from eval.tools.command import offer

    with _failures_told(run):
        return offer(options, run)


def bench(options: of.BenchOptions, run: Run) -> dict[str, float]:
    """`rearrange bench <what>`: measurements on this machine."""
    from importlib import import_module

    from rearrange.command_line.composition.bench_settings import MODULES

    module = import_module(MODULES[options.choices["bench"]])
    if hasattr(module, "check"):
        module.check(options.measurement)
    run.create()
    return module.run_bench(options.measurement, run)


def report(options: of.ReportOptions) -> None:
    """`rearrange report`: runs as one HTML page."""
    from eval.report.page import report as write_report

    made = write_report(options)
    for path in made.runs:
        print(f"  {path}")
    left_out = f", {made.left_out} left out (raise video_mb=)" if made.left_out else ""
    counts = "   ".join(f"{n:,} {word}{'' if n == 1 else 's'}" for n, word in (
        (len(made.runs), "run"), (made.episodes, "episode"), (made.videos, "video")))
    print(f"{made.path}   {made.path.stat().st_size / 1e6:.1f} MB   {counts}{left_out}")


def reproduce(options: of.ReproduceOptions, hydras: list[str]) -> int:
    """`rearrange reproduce`: trainings, evaluations and the report, each once, where `hydra/launcher=` says; the exit
    status."""
    from eval.reproduction.reproduce import run as reproduce_all

    return reproduce_all(options, hydras)


def export(options: of.ExportOptions) -> None:
    """`rearrange export`."""
    from eval.policy_file import write

    print(write(options))


OF_SCENES = {  # action -> its settings
    "export": ("format", "split", "furniture", "count", "out", "episodes_of", "episodes"),
    "list": ("dataset",), "check": ("dataset", "robot", "hand"), "view": ("dataset", "scenes", "out"),
    "measure": ("dataset", "scenes", "furniture", "out"),
    "episodes": ("dataset", "scenes", "split", "count", "out", "skill", "hab")}


def scenes(options: of.ScenesOptions) -> None:
    """`rearrange scenes export | list | check | view | measure | episodes`."""
    asked = [group for group in ("skill", "hab") if getattr(options, group)]
    for key in (word.lstrip("+").partition("=")[0] for word in options.words):
        of = "skill.*" if key.startswith("skill.") else key.partition(".")[0]  # hab.clutter changes what is drawn
        if of != "action" and of not in OF_SCENES[options.action]:
            takes = ", ".join(action for action, settings in OF_SCENES.items() if of in settings)
            here = ", ".join(f"{each}=" for each in OF_SCENES[options.action])
            raise UserError(f"{key}= {f'is for rearrange scenes {takes}' if takes else 'changes no scenes'}; rearrange "
                            f"scenes {options.action} takes {here}.")
    if options.action == "episodes":
        return _scene_episodes(options, asked)
    if options.action != "export":
        if options.action == "view" and options.dataset is not None:
            from rearrange.home.simulation.scenes.contact_sheet import view

            return view(options.dataset, options.scenes, options.out, _progress("reading scenes", "scenes"))
        if options.action == "measure":
            from rearrange.home.simulation.measures.command import measure

            return measure(options.dataset, options.scenes, options.furniture, options.out,
                           _progress("measuring homes", "homes"))
        if options.dataset is not None and options.dataset.endswith(".json.gz"):
            from rearrange.navigation.habitat_episodes import show as show_episodes

            return show_episodes(options.action, options.dataset)
        from planner.scenarios import load_scenario, scenarios
        from rearrange.env.external_scenarios import refused_scenarios
        from rearrange.home.episodes.generator import KINDS
        from rearrange.home.robot import robot_named
        from rearrange.home.scene_files.list_and_check import show
        from rearrange.home.simulation.scenes.scene import data_set, load_scene
        from rearrange.home.simulation.scenes.scene_selection import refused

        listed = [load_scenario(name).scenario for name in scenarios()]
        robot = robot_named(options.robot, options.hand, key="robot")

        def lacking(path: Path, name: str) -> dict[str, str]:  # scenes are not kept: each is looked at once
            home = load_scene.__wrapped__(path, name).home
            return refused(home, robot) | refused_scenarios(path, name, listed, options.robot, options.hand)

        return show(options.action, options.dataset, data_set, (*KINDS, *(each.name for each in listed)), lacking,
                    _progress("reading scenes", "scenes"))
    from planner.scenarios import load_scenario
    from rearrange import __version__
    from rearrange.habitat.export.data_set import FromAbove, export

    export(vars(options), FromAbove(__version__, lambda name: load_scenario(name).scenario))


def _progress(what: str, unit: str) -> Callable[[int], Progress]:
    from trainer.logs.progress import Progress

    return lambda count: Progress(count, what, unit=unit, out=sys.stderr)


def _scene_episodes(options: of.ScenesOptions, asked: list[str]) -> None:
    """Write the first episodes of a skill or scenario in scenes of a data set."""
    if options.dataset is None or len(asked) != 1:
        raise UserError("name a data set with dataset= and one scenario with hab= or one skill with skill=, as in "
                        "rearrange scenes episodes dataset=replica_cad/replicaCAD.scene_dataset_config.json "
                        "hab=set_table count=100.")
    from rearrange.env.external_scenarios import drawn_episodes
    from rearrange.habitat.export.external_episodes import write_external_episodes

    name = options.hab.name if options.hab else options.choices["skill"]
    kind = options.hab.scenario if options.hab else name
    out, dataset = Path(options.out or f"{name}.json.gz"), Path(options.dataset)
    if not out.name.endswith(".json.gz") or not may_be_written(out):
        raise UserError(f"out={out} should be a file *.json.gz, new or to be written anew.")
    with _progress("drawing episodes", "episodes")(options.count) as progress:
        episodes, left_out = drawn_episodes(dataset, kind, options.split, options.scenes, options.count,
                                            lambda done: progress.update(done, {}))
    print("\n".join(f"left out: {why}" for why in left_out), end="\n" * bool(left_out))
    if not episodes:
        raise UserError(f"none of the {options.count} episodes can be drawn in these scenes; {out} is not written.")
    try:
        write_external_episodes(out, episodes, dataset)
    except OSError as error:
        raise UserError(f"out={out} cannot be written: {error.strerror or error}.") from None
    print(f"{out}: {len(episodes)} episodes of {name}; run them with rearrange eval "
          f"{asked[0]}={name} sim.scene_dataset={dataset} sim.episodes={out}")
