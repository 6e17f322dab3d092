"""Put a trained policy into the package, where `checkpoint=pretrained` finds it.

    python -m eval.publish outputs/train/pick/long                    weights in half precision, and a card
    rearrange eval skill=pick checkpoint=pretrained episodes=500      measures what was published
    python -m eval.publish outputs/eval/pick/latest                   adds those figures to the card
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from rearrange.errors import UserError
from skills import pretrained

MAX_BYTES = 3_000_000
_KEPT = ("format", "step", "policy", "policy_config", "observation_space", "action_space", "meta")


def publish_policy(run: Path, folder: Path = pretrained.FOLDER) -> Path:
    """Write the newest checkpoint of a training run as `<folder>/<skill>.pt`, with its card. Returns the file."""
    import torch

    from trainer.checkpoint import load_checkpoint

    content = load_checkpoint(run)
    small = {key: content[key] for key in _KEPT} | {"meta": _of_the_policy(content["meta"])}
    small["policy"] = {k: v.half() if v.is_floating_point() else v for k, v in content["policy"].items()}
    skill = content["meta"]["skill"]
    file = folder / f"{skill}.pt"
    before = _started_from(content["meta"], file)
    partial = file.with_suffix(".partial")
    torch.save(small, partial)
    if partial.stat().st_size > MAX_BYTES:
        size = partial.stat().st_size
        partial.unlink()
        raise UserError(f"the policy of {run} takes {size:,} bytes; a published one takes at most {MAX_BYTES:,}.")
    partial.replace(file)
    _write_card(file, {"skill": skill, **_origin(run), "steps": int(content["step"]), **before, "evaluations": []})
    return file


def publish_evaluation(run: Path, folder: Path = pretrained.FOLDER) -> Path:
    """Add the figures of an evaluation of a published policy to its card. Returns the card."""
    figures = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    file = folder / f"{figures['skill']}.pt"
    if Path(figures["checkpoint"] or "").resolve() != file.resolve():
        raise UserError(f"{run} did not evaluate the published policy {file}: use checkpoint=pretrained.")
    card = OmegaConf.to_container(OmegaConf.load(file.with_suffix(".yaml")))
    row = {key: figures[key] for key in ("split", "episodes", "deterministic", "success", "success_interval_95", "failures",
                                         "mean_steps")}
    same = ("split", "deterministic")
    card["evaluations"] = [old for old in card["evaluations"] if any(old[k] != row[k] for k in same)] + [row]
    return _write_card(file, card)


def _of_the_policy(meta: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint says, without the files that were on the machine which trained it."""
    env = {key: value for key, value in meta["env"].items() if key != "episodes"}
    return {key: value for key, value in meta.items() if key != "started_from"} | {"env": env}


def _started_from(meta: dict[str, Any], file: Path) -> dict[str, Any]:
    """What the policy began with, where it was another one: what the card of the published one says, or a card of the run."""
    word = meta.get("started_from")
    if word is None:
        return {}
    if word == "pretrained":
        card = OmegaConf.to_container(OmegaConf.load(file.with_suffix(".yaml")))
        return {"started_from": {key: card[key] for key in card if key not in ("skill", "evaluations")}}
    run = Path(word).parent.parent if word.endswith(".pt") else Path(word)  # of a checkpoint, in the folder checkpoints of its run
    if not (run / "overrides.yaml").exists():
        return {"started_from": Path(word).name}
    from trainer.checkpoint import load_checkpoint

    content = load_checkpoint(Path(word))
    return {"started_from": {**_origin(run), "steps": int(content["step"]), **_started_from(content["meta"], file)}}


def _origin(run: Path) -> dict[str, Any]:
    """Command and code of a training run."""
    typed = OmegaConf.to_container(OmegaConf.load(run / "overrides.yaml"))
    shown = [word for word in typed if word.split("=")[0] not in ("name", "output", "resume")]
    words = [f"{key}={Path(value).name}" if key in ("checkpoint", "sim.episodes") else f"{key}={value}"
             for key, _, value in (word.partition("=") for word in shown)]
    changed = (run / "git.diff").exists() and (run / "git.diff").stat().st_size > 0
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return {"command": " ".join(["rearrange train", *words]),
            "commit": (run / "git.txt").read_text(encoding="utf-8").split()[0] + (" with changes" if changed else ""),
            "training_hours": round(_hours(rows), 2)}


def _hours(rows: list[dict[str, Any]]) -> float:
    """Time that a run took; its clock starts again at 0 when it is resumed."""
    total, before = 0.0, 0.0
    for row in rows:
        total += row["wall_s"] - before if row["wall_s"] >= before else row["wall_s"]
        before = row["wall_s"]
    return total / 3600


def _write_card(file: Path, card: dict[str, Any]) -> Path:
    path = file.with_suffix(".yaml")
    path.write_text(OmegaConf.to_yaml(card), encoding="utf-8")
    return path


def main(words: list[str]) -> int:
    """`python -m eval.publish DIRECTORY`: of a training run or of an evaluation."""
    if len(words) != 1 or words[0].startswith("-"):
        print(__doc__)
        return 0 if words in (["--help"], ["-h"]) else 2
    from trainer.checkpoint import CheckpointError

    run = Path(words[0])
    try:
        print(publish_evaluation(run) if (run / "metrics.json").exists() else publish_policy(run))
    except (UserError, OSError, CheckpointError) as error:
        print(f"eval.publish: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
