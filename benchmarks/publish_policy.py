"""Put a trained policy into the package, where `checkpoint=pretrained` finds it.

    python -m benchmarks.publish_policy outputs/train/pick/long          weights in half precision, and a card
    rearrange eval skill=pick checkpoint=pretrained episodes=500         measures what was published
    python -m benchmarks.publish_policy outputs/eval/pick/latest         adds those figures to the card
    python -m benchmarks.publish_policy outputs/eval/tidy_house/latest   adds those of a scenario to the cards of its
    policies

Before a policy replaces another, both are evaluated in test homes, in test homes with wide furniture and, with
`dataset=` (and `scenes=`), in those scenes, and in plans among the policies that ship, `episodes=500` of each; the card
keeps the figures. One that is worse than the shipped one in any of them, by more than the interval, is refused unless
`worse=true` is written. Whole tasks of the policy that it replaces leave all cards. With `keep=0.25` a quarter of the
weights of the one that it replaces stays, and three quarters are new (docs/findings/averaged_policies.md).

Navigation tasks, `nav=`, as skills. A card has a row for each protocol: HAB's start, with its settings typed, and the
start that the policy was trained with, where that is another. Those with `to_the_end=true`, by which episodes go on
after their success, have rows of their own (`to_the_end`). Evaluations with an episode file, other settings of the
task or other rules, or of fewer episodes than the figure that stands there, are refused. What limits a policy is
written into its card by hand (`limits`).
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import policy_homes
from eval.protocol import hab_settings, protocol
from eval.task_from_settings import json_safe, navigation_task, skill_task, trained_settings
from eval.trained_policy import of_what, settings_of, training_of
from rearrange.command_line.runs.run_directory import write_whole
from rearrange.home.errors import UserError
from rearrange.home.files import MOST_JSON, read_json, read_text
from rearrange.home.robot import robot_of
from rearrange.home.settings.environment import NAVIGATION, SPLITS, HomeSettings
from rearrange.home.settings.setting_fields import keys_of
from rearrange.home.settings.yaml_files import as_yaml, plain_yaml
from skills import SKILLS, pretrained, recipes
from trainer.logs.logger import read_jsonl

MAX_BYTES = 3_000_000
_KEPT = ("format", "step", "policy", "policy_config", "observation_space", "action_space", "meta")
_MEASURED = ("split", "episodes", "deterministic", "success", "success_interval_95", "failures", "mean_steps")
_IN_PLANS = ("scenario", "problem", "protocol", "split", "seed", "episodes", "success", "success_015",
             "success_015_interval_95")
_IN_PLANS_SINCE = ("success_stable", "success_stable_interval_95", "goal_share", "mean_simulated_s", "mean_driven_m",
                   "mean_hand_path_m")  # which older evaluations do not have
_TO_THE_END = ("split", "episodes", "deterministic", "success_once", "success_at_end", "success_at_end_interval_95")
# of a card, what another policy that begins with this one does not take over
_OF_THE_WHOLE = ("homes", "evaluations", "to_the_end", "plans", "limits")
Measure = Callable[[Path, Path | None, str, str], list[dict[str, Any]]]
_GROUPS = {"skill": tuple(SKILLS), "nav": tuple(NAVIGATION)}


def publish_policy(run: Path, folder: Path = pretrained.FOLDER, measure: Measure | None = None,
                   keep: float = 0.0) -> Path:
    """Write the newest checkpoint of a training run as `<folder>/<task>.pt`, with its card. Returns the file.

    Args:
        run: directory of the training run.
        folder: where policies are published.
        measure: given the new file, the one that it would replace (None: there is none), `skill` or `nav`, and the
            task, it returns rows for the card, or raises UserError.
        keep: share, 0 to 1, of the weights of the policy that it replaces in the average that is written (Wortsman et
            al. 2022, Robust fine-tuning of zero-shot models, arXiv 2109.01903); 0 = its own weights alone.
    """
    import torch

    from trainer.checkpoint import load_checkpoint, load_policy, write_torch_file

    content = load_checkpoint(run)
    load_policy(content)  # which refuses weights that do not fit the network
    group, task = _task(content.get("meta", {}))
    if task is None:
        raise UserError(f"{run} is a training run of something else than a skill or navigation task: "
                        f"{of_what(content.get('meta', {}))}.")
    small = {key: content[key] for key in _KEPT} | {"meta": _of_the_policy(content["meta"])}
    file = folder / f"{task}.pt"
    weights = _averaged(content["policy"], file, keep) if keep else content["policy"]
    # statistics have 64 bits
    small["policy"] = {k: v.half() if v.dtype == torch.float32 else v for k, v in weights.items()}
    of = {"robot": robot_of(content["meta"].get("env", {})).said} if group == "skill" else {}
    card = {group: task, **of, **_origin(run), "steps": int(content["step"]), **_started_from(content["meta"], file),
            **({"kept": {"share": keep, "policy": policy_homes.digest(file)}} if keep else {})}
    with tempfile.TemporaryDirectory(prefix=".publish-", dir=folder) as place:
        partial = Path(place) / file.name
        write_torch_file(partial, small)
        if (size := partial.stat().st_size) > MAX_BYTES:
            raise UserError(f"the policy of {run} takes {size:,} bytes; a published one takes at most {MAX_BYTES:,}.")
        rows = measure(partial, file if file.exists() else None, group, task) if measure else []
        gone = plain_yaml(file.with_suffix(".yaml")).get("plans", []) if file.exists() else []
        partial.replace(file)
    _write_card(file, card | ({"homes": rows} if rows else {}) | {"evaluations": []})
    _forget_plans(folder, gone)
    return file


def _averaged(new: dict[str, Any], file: Path, keep: float) -> dict[str, Any]:
    """The weights of a policy and of the one in `file`, that one's with the share `keep`. UserError where that one is
    no policy of the same network.
    """
    import torch

    from trainer.checkpoint import load_checkpoint

    if not file.exists():
        raise UserError(f"keep={keep:g} averages with the policy that ships, and there is none: {file}.")
    old = load_checkpoint(file)["policy"]
    if {name: value.shape for name, value in new.items()} != {name: value.shape for name, value in old.items()}:
        raise UserError(f"keep={keep:g} averages policies of one network, and that of {file} is another.")
    return {name: torch.lerp(value.double(), old[name].double(), keep).to(value.dtype)
            if value.is_floating_point() else value for name, value in new.items()}


def _forget_plans(folder: Path, gone: list[dict[str, Any]]) -> None:
    """Take whole tasks out of the cards of all policies that took part: one of them is no longer the published one."""
    for path in folder.glob("*.yaml") if gone else ():
        card = plain_yaml(path)
        there = card.pop("plans", [])
        left = [row for row in there if row not in gone]
        if len(left) < len(there):
            _write_card(path, card | ({"plans": left} if left else {}))


def publish_evaluation(run: Path, folder: Path = pretrained.FOLDER) -> list[Path]:
    """Add the figures of an evaluation of published policies to their cards. Returns the cards."""
    figures = read_json(run / "metrics.json")
    if not isinstance(figures, dict):
        raise UserError(f"{run / 'metrics.json'} holds no figures of an evaluation.")
    if figures.get("interrupted"):
        raise UserError(f"{run} was interrupted: only a whole evaluation is published.")
    return _publish_scenario(run, figures, folder) if "scenario" in figures else [_publish_task(run, figures, folder)]


def _publish_scenario(run: Path, figures: dict[str, Any], folder: Path) -> list[Path]:
    """The whole task's success, in the card of every policy that took part."""
    policies = figures.get("skills")
    if figures.get("agent") != "tp_srl" or not isinstance(policies, dict) or not policies:
        raise UserError(f"{run} is one of agent={figures.get('agent')}: of scenarios only evaluations of "
                        "agent=tp_srl are published.")
    if missing := [key for key in (*_IN_PLANS, "changed", "deterministic") if key not in figures]:
        raise UserError(f"{run / 'metrics.json'} has no {missing[0]}: evaluate again.")
    _, _, typed = figures["protocol"].partition(", ")
    _refuse_changed(run, [*figures["changed"], *(f"planner.{word}" for word in typed.split(", ") if word),
                          *(["deterministic=true"] if figures["deterministic"] else [])])
    for skill, used in policies.items():
        if not Path(used).is_file() or Path(used).read_bytes() != (folder / f"{skill}.pt").read_bytes():
            raise UserError(f"{run} did not evaluate the published policy of {skill} but {used}: use "
                            f"skills.{skill}=pretrained.")
    row = {key: figures[key] for key in _IN_PLANS} | {key: figures[key] for key in _IN_PLANS_SINCE if key in figures}
    same = ("scenario", "problem", "protocol", "split")
    cards = {folder / f"{skill}.pt": plain_yaml(folder / f"{skill}.yaml") for skill in policies}
    for card in cards.values():
        rows = {tuple(old[k] for k in same): old for old in card.get("plans", [])}
        _refuse_fewer(run, row, rows.get(tuple(row[k] for k in same)))
        # a new figure in the place of the old one
        card["plans"] = list((rows | {tuple(row[k] for k in same): row}).values())
    return [_write_card(file, card) for file, card in cards.items()]


def _publish_task(run: Path, figures: dict[str, Any], folder: Path) -> Path:
    group, task = _task(figures)
    if task is None:
        raise UserError(f"{run / 'metrics.json'} is not that of an evaluation of a skill, navigation task or scenario.")
    file = folder / f"{task}.pt"
    if Path(str(figures.get("checkpoint"))).resolve() != file.resolve():
        raise UserError(f"{run} did not evaluate the published policy {file}: use checkpoint=pretrained.")
    if missing := [key for key in (*_MEASURED, "env") if key not in figures]:
        raise UserError(f"{run / 'metrics.json'} has no {missing[0]}: evaluate again.")
    usual = usual_settings(file, group, task)
    changed = [_changed(group, figures["env"], json_safe(usual | of)) for of in ({}, hab_settings(task))]
    _refuse_changed(run, [] if [] in changed else changed[0])
    card = plain_yaml(file.with_suffix(".yaml"))
    if figures.get("success_at_end") is not None:
        row = {"protocol": protocol(task, figures["env"]), **{key: figures[key] for key in _TO_THE_END}}
        return _write_card(file, card | {"to_the_end": _in_place_of(run, row, card.get("to_the_end", []))})
    row = {"protocol": protocol(task, figures["env"])} | {key: figures[key]
                                                          for key in _MEASURED} | _path_figures(figures)
    card["evaluations"] = sorted(_in_place_of(run, row, card["evaluations"]),
                                 key=lambda each: (not each["protocol"].startswith("HAB"), SPLITS.index(each["split"])))
    return _write_card(file, card)


def usual_settings(file: Path, group: str, task: str) -> dict[str, Any]:
    """Settings of the environment in which `rearrange eval` evaluates the policy in `file` where none of them is
    typed.
    """
    from rearrange.command_line.composition.options import options_of
    from rearrange.command_line.composition.parse_overrides import compose
    from trainer.checkpoint import load_checkpoint

    options = options_of(compose("eval", [f"{group}={task}"]))
    env = (navigation_task if group == "nav" else skill_task)(options, options.split, 0).env
    meta = training_of(load_checkpoint(file))
    return json_safe(env | settings_of(meta | {"env": trained_settings(file, meta, task)}))


def _changed(group: str, env: dict[str, Any], usual: dict[str, Any]) -> list[str]:
    """Settings of an environment that are not the usual ones, as they are typed: `skill.max_steps=20`."""
    typed = {"sim": "sim", **{key.name: f"sim.{key.name}" for key in keys_of(HomeSettings) if key.name != "sim"}}
    return [f"{typed.get(key, f'{group}.{key}')}={env.get(key)}" for key in (*usual, *(env.keys() - usual.keys()))
            if key not in ("split", "gpu_device") and env.get(key) != usual.get(key)]


def _refuse_changed(run: Path, words: list[str]) -> None:
    if words:
        raise UserError(f"{run} is an evaluation with {', '.join(words)}, and a card holds those of the task and "
                        "the rules as they come: leave that out and evaluate again.")


def _in_place_of(run: Path, row: dict[str, Any], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with a new one in the place of that of the same kind. UserError where that one has more episodes."""
    def of_the_kind(old: dict[str, Any]) -> bool:
        return all(old.get(key) == row[key] for key in ("protocol", "split", "deterministic"))

    _refuse_fewer(run, row, next(filter(of_the_kind, rows), None))
    return [old for old in rows if not of_the_kind(old)] + [row]


def _refuse_fewer(run: Path, row: dict[str, Any], there: dict[str, Any] | None) -> None:
    if there and row["episodes"] < there["episodes"]:
        raise UserError(f"{run} has {row['episodes']} episodes, and the figure in whose place it would come "
                        f"{there['episodes']}: evaluate again with episodes={there['episodes']}.")


def _task(of: dict[str, Any]) -> tuple[str, str] | tuple[None, None]:
    """The group, `skill` or `nav`, and name of what a checkpoint or an evaluation is of; twice None if of neither."""
    return next(((group, of[group]) for group, names in _GROUPS.items() if of.get(group) in names), (None, None))


def _path_figures(figures: dict[str, Any]) -> dict[str, Any]:
    """SPL of a navigation task that has a goal."""
    if "spl_interval_95" not in figures:
        return {}
    return {"spl": figures["measures"]["spl"], "spl_interval_95": figures["spl_interval_95"]}


def _of_the_policy(meta: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says, without the files that were on the machine which trained it, and without the share of
    long ways in its training: evaluations begin anywhere.
    """
    env = {key: value for key, value in meta["env"].items() if key not in ("episodes", "detour_probability")}
    return {key: value for key, value in meta.items() if key != "started_from"} | {"env": env}


def _started_from(meta: dict[str, Any], file: Path) -> dict[str, Any]:
    """What the policy began with, where it was another one: what the card of the published one says, or a card of the
    run.
    """
    word = meta.get("started_from")
    if word is None:
        return {}
    if word == "pretrained":
        card = plain_yaml(file.with_suffix(".yaml"))
        return {"started_from": {key: card[key] for key in card if key not in (*_GROUPS, *_OF_THE_WHOLE)}}
    # of a checkpoint, in the folder checkpoints of its run
    run = Path(word).parent.parent if word.endswith(".pt") else Path(word)
    if not (run / "overrides.yaml").exists():
        return {"started_from": Path(word).name}
    from trainer.checkpoint import load_checkpoint

    content = load_checkpoint(Path(word))
    return {"started_from": {**_origin(run), "steps": int(content["step"]), **_started_from(content["meta"], file)}}


def _origin(run: Path) -> dict[str, Any]:
    """Command and code of a training run."""
    typed = plain_yaml(run / "overrides.yaml")
    if not isinstance(typed, list) or not all(isinstance(word, str) for word in typed):
        raise UserError(f"{run / 'overrides.yaml'} holds no list of settings.")
    shown = [word for word in typed if word.split("=")[0] not in ("name", "output", "resume")]
    words = [f"{key}={_name_of(value) if key in ('checkpoint', 'demos', 'sim.episodes') else value}"
             for key, _, value in (word.partition("=") for word in shown)]
    changed = (run / "git.diff").exists() and (run / "git.diff").stat().st_size > 0
    rows = [row for row in read_jsonl(run / "metrics.jsonl") if isinstance(row.get("wall_s"), (int, float))]
    recipe = recipes.recipe_of(typed)
    return {"command": " ".join(["rearrange train", *words]), **({"recipe": recipe} if recipe else {}),
            "commit": read_text(run / "git.txt", MOST_JSON).partition(" ")[0].strip()
            + (" with changes" if changed else ""), "training_hours": round(_hours(rows), 2)}


def _name_of(value: str) -> str:
    """Of a file, or of a pattern that is quoted, without its folder."""
    return Path(value.strip("'")).name


def _hours(rows: list[dict[str, Any]]) -> float:
    """Time that a run took; its clock starts again at 0 when it is resumed."""
    total, before = 0.0, 0.0
    for row in rows:
        total += row["wall_s"] - before if row["wall_s"] >= before else row["wall_s"]
        before = row["wall_s"]
    return total / 3600


def _write_card(file: Path, card: dict[str, Any]) -> Path:
    path = file.with_suffix(".yaml")
    write_whole(path, as_yaml(card))
    return path


def measure_with(settings: dict[str, str]) -> Measure:
    """How policies are measured before one replaces another, by the words that are typed. UserError for others."""
    if wrong := next((key for key in settings if key not in ("dataset", "scenes", "episodes", "worse", "keep")), None):
        raise UserError(f"{wrong}= is no word of benchmarks.publish_policy: dataset=, scenes=, episodes=, worse=true, "
                        "keep=.")
    if not (count := settings.get("episodes", "500")).isdecimal() or int(count) < 1:
        raise UserError(f"episodes={count} is not allowed: it must be an integer of at least 1.")

    def measure(new: Path, old: Path | None, group: str, task: str) -> list[dict[str, Any]]:
        from trainer.checkpoint import load_checkpoint

        begin = policy_homes.starts(task, load_checkpoint(new)["meta"]["env"])
        words = policy_homes.kinds(group, task, begin, settings.get("dataset"), settings.get("scenes"))
        rows, before = ([policy_homes.measured(file, task, words, int(count)) for file in (new, old) if file]
                        + [[]])[:2]
        print(*policy_homes.lines(rows, before), sep="\n")
        if settings.get("worse") != "true":
            policy_homes.refuse_a_fall(rows, before)
        return rows

    return measure


def share(word: str) -> float:
    """A number from 0 to below 1; UserError for others."""
    try:
        number = float(word)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1:
        raise UserError(f"keep={word} is not allowed: it must be a number from 0 to below 1, as 0.25.")
    return number


def main(words: list[str]) -> int:
    """`python -m benchmarks.publish_policy DIRECTORY [key=value ...]`: of a training run or of an evaluation."""
    if not words or words[0].startswith("-") or not all("=" in word for word in words[1:]):
        print(__doc__)
        return 0 if words in (["--help"], ["-h"]) else 2
    from trainer.checkpoint import CheckpointError

    run, settings = Path(words[0]), dict(word.split("=", 1) for word in words[1:])
    try:
        measure, keep = measure_with(settings), share(settings.get("keep", "0"))
        print(*(publish_evaluation(run) if (run / "metrics.json").exists() else
                [publish_policy(run, measure=measure, keep=keep)]), sep="\n")
    except (OSError, ValueError, CheckpointError) as error:  # UserError is a ValueError
        print(f"benchmarks.publish_policy: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("benchmarks.publish_policy: stopped.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
