"""What the commands do, once the command line has been checked: each asks the part that does it.

`rearrange.command_line.cli` imports this module last; everything here may import torch and the simulator.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig, OmegaConf

from eval.skill_command import evaluate_skill, recorded_skill
from eval.train_command import train
from rearrange.env.registration import register_envs
from rearrange.home.errors import UserError
from rearrange.home.files import may_be_written
from rearrange.home.settings.remote import RemoteError

if TYPE_CHECKING:
    from rearrange.command_line.runs.run_directory import Run
    from rearrange.home.settings.composed_config import Settings
    from trainer.logs.progress import Progress

__all__ = ["train"]

register_envs()  # a policy may be of any environment that `gymnasium.make` knows


def evaluate(config: DictConfig, run: Run) -> dict[str, float]:
    """`rearrange eval`: success over many episodes, metrics.json, episodes.csv and videos."""
    plain = OmegaConf.to_container(config, resolve=True)
    with _failures_told(run):
        if plain.get("hab"):
            from eval.scenario import command as hab_command

            return hab_command.evaluate(plain, run)
        return evaluate_skill(plain, run)


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


def record(settings: Settings) -> int:
    """`rearrange record`: episodes as a data set, or the check that a recording replays; the exit status."""
    from eval.recording.record import record as record_all

    plain = OmegaConf.to_container(settings.config, resolve=True)
    if plain["replay"] is None:
        return record_all(settings, plain, recorded_skill)
    from eval.recording.replay import replay, said

    folder = Path(plain["replay"])
    results = replay(folder, plain["episodes"], plain["workers"], (plain.get("skill") or {}).get("name"))
    print("\n".join(said(results, folder)))
    return int(not results or any(result.frame is not None for result in results))


def view(settings: Settings) -> int:
    """`rearrange view`: until Ctrl-C."""
    from eval.view.server import require_package

    require_package()
    from eval.view.viewer import view as look

    look(settings, recorded_skill)
    return 0


def serve(config: DictConfig) -> None:
    """`rearrange serve`: until Ctrl-C."""
    from eval.remote.serving import run

    run(OmegaConf.to_container(config, resolve=True))


def tools(config: DictConfig, run: Run) -> dict[str, float]:
    """`rearrange tools`: until the client goes."""
    from eval.tools.command import offer

    with _failures_told(run):
        return offer(OmegaConf.to_container(config, resolve=True), run)


def bench(config: DictConfig, run: Run) -> dict[str, float]:
    """`rearrange bench <what>`: measurements on this machine."""
    from importlib import import_module

    from rearrange.command_line.composition.bench_settings import MODULES

    plain = OmegaConf.to_container(config, resolve=True)
    module = import_module(MODULES[plain["what"]])
    if hasattr(module, "check"):
        module.check(plain)
    run.create()
    return module.run_bench(plain, run)


def report(config: DictConfig) -> None:
    """`rearrange report`: runs as one HTML page."""
    from eval.report.page import report as write_report

    made = write_report(OmegaConf.to_container(config, resolve=True))
    for path in made.runs:
        print(f"  {path}")
    left_out = f", {made.left_out} left out (raise video_mb=)" if made.left_out else ""
    counts = "   ".join(f"{n:,} {word}{'' if n == 1 else 's'}" for n, word in (
        (len(made.runs), "run"), (made.episodes, "episode"), (made.videos, "video")))
    print(f"{made.path}   {made.path.stat().st_size / 1e6:.1f} MB   {counts}{left_out}")


def reproduce(config: DictConfig, hydras: list[str]) -> int:
    """`rearrange reproduce`: trainings, evaluations and the report, each once, where `hydra/launcher=` says; the exit
    status."""
    from eval.reproduction.reproduce import run as reproduce_all

    return reproduce_all(OmegaConf.to_container(config, resolve=True), hydras)


def export(config: DictConfig) -> None:
    """`rearrange export`."""
    from eval.policy_file import write

    print(write(OmegaConf.to_container(config, resolve=True)))


def scenes(config: DictConfig) -> None:
    """`rearrange scenes export | list | check | view | measure | episodes`."""
    asked = [group for group in ("skill", "hab") if config.get(group)]
    if config.action == "episodes":
        return _scene_episodes(config, asked)
    if asked:
        raise UserError(f"{asked[0]}= says which episodes rearrange scenes episodes writes; rearrange scenes "
                        f"{config.action} takes none.")
    if config.action != "export":
        if config.action == "view" and config.dataset is not None:
            from rearrange.home.simulation.scenes.contact_sheet import view

            return view(config.dataset, config.scenes, config.out, _progress("reading scenes", "scenes"))
        if config.action == "measure":
            from rearrange.home.simulation.measures.command import measure

            return measure(config.dataset, config.scenes, config.furniture, config.out,
                           _progress("measuring homes", "homes"))
        if config.dataset is not None and config.dataset.endswith(".json.gz"):
            from rearrange.navigation.habitat_episodes import show as show_episodes

            return show_episodes(config.action, config.dataset)
        from planner.scenarios import load_scenario, scenarios
        from rearrange.env.external_scenarios import refused_scenarios
        from rearrange.home.episodes.generator import KINDS
        from rearrange.home.scene_files.list_and_check import show
        from rearrange.home.simulation.scenes.scene import data_set, load_scene
        from rearrange.home.simulation.scenes.scene_selection import refused

        listed = [load_scenario(name).scenario for name in scenarios()]

        def lacking(path: Path, name: str) -> dict[str, str]:  # scenes are not kept: each is looked at once
            return refused(load_scene.__wrapped__(path, name).home) | refused_scenarios(path, name, listed)

        return show(config.action, config.dataset, data_set, (*KINDS, *(each.name for each in listed)), lacking,
                    _progress("reading scenes", "scenes"))
    from planner.scenarios import load_scenario
    from rearrange import __version__
    from rearrange.habitat.export.data_set import FromAbove, export

    export(OmegaConf.to_container(config, resolve=True),
           FromAbove(__version__, lambda name: load_scenario(name).scenario))


def _progress(what: str, unit: str) -> Callable[[int], Progress]:
    from trainer.logs.progress import Progress

    return lambda count: Progress(count, what, unit=unit, out=sys.stderr)


def _scene_episodes(config: DictConfig, asked: list[str]) -> None:
    """Write the first episodes of a skill or scenario in scenes of a data set."""
    if config.dataset is None or len(asked) != 1:
        raise UserError("name a data set with dataset= and one scenario with hab= or one skill with skill=, as in "
                        "rearrange scenes episodes dataset=replica_cad/replicaCAD.scene_dataset_config.json "
                        "hab=set_table count=100.")
    from planner.scenarios import make_scenario
    from rearrange.env.external_scenarios import drawn_episodes
    from rearrange.habitat.export.external_episodes import write_external_episodes

    chosen = OmegaConf.to_container(config[asked[0]], resolve=True)
    kind = chosen["name"] if asked[0] == "skill" else make_scenario(chosen, "hab").scenario
    out, dataset = Path(config.out or f"{chosen['name']}.json.gz"), Path(config.dataset)
    if not out.name.endswith(".json.gz") or not may_be_written(out):
        raise UserError(f"out={out} should be a file *.json.gz, new or to be written anew.")
    with _progress("drawing episodes", "episodes")(config.count) as progress:
        episodes, left_out = drawn_episodes(dataset, kind, config.split, config.scenes, config.count,
                                            lambda done: progress.update(done, {}))
    print("\n".join(f"left out: {why}" for why in left_out), end="\n" * bool(left_out))
    if not episodes:
        raise UserError(f"none of the {config.count} episodes can be drawn in these scenes; {out} is not written.")
    try:
        write_external_episodes(out, episodes, dataset)
    except OSError as error:
        raise UserError(f"out={out} cannot be written: {error.strerror or error}.") from None
    print(f"{out}: {len(episodes)} episodes of {chosen['name']}; run them with rearrange eval "
          f"{asked[0]}={chosen['name']} sim.scene_dataset={dataset} sim.episodes={out}")


def list_(config: DictConfig) -> None:
    """`rearrange list`."""
    from rearrange.command_line.listing import show

    show(config)
