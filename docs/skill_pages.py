"""Writes docs/skills/<skill>.md for every skill from its code and its configuration, so that the pages cannot drift.

    python docs/skill_pages.py                  writes the pages
    python docs/skill_pages.py --check          says which pages are not what the code says
    python docs/skill_pages.py --pictures pick  makes pictures too, of the skills that are named (default: all)

The text of a page is the docstring at the top of the skill's file, by its labels ("Start:", "Success:" ...); the
tables are read from its class, its environment and its settings. The picture,
docs/images/skills/<skill>.png, shows three moments of an episode that the scripted expert of the skill solves, in a
home of the validation split.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

HOME = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HOME))

from docs.picture import strip  # noqa: E402
from docs.written_pages import table, wrapped, write  # noqa: E402
from eval.video import compose  # noqa: E402
from rearrange.command_line.composition import options  # noqa: E402
from rearrange.env.skill_env import ENV_FAILURES  # noqa: E402
from rearrange.home.action_layout import action_meanings  # noqa: E402
from rearrange.home.settings.setting_fields import Key, shown  # noqa: E402
from rearrange.home.simulation.observations import OBSERVATIONS  # noqa: E402
from skills import SKILLS, make_env, pretrained, skill_class  # noqa: E402
from skills.experts import EXPERTS  # noqa: E402

PAGES, PICTURES = HOME / "docs" / "skills", HOME / "docs" / "images" / "skills"
SPLITS = {"val": "validation", "test": "test"}
EPISODES = 40  # tried for a picture
LEAST_STEPS = 60  # of an episode that is worth a picture
_LABEL = re.compile(r"(?:^|(?<=\. ))(Observation|Action|Reward|Success|Failure|Start|Sources?): ", re.MULTILINE)
_OF_GROUP = {
    "initial_std": "standard deviation of the exploration noise when training starts: ",
    "initial_mean": "mean action when training starts: ",
}
_TRUNCATIONS = {
    "time_limit": "the steps of the episode are over; this truncates, it does not terminate",
    "unstable": "the physics broke down; this truncates, it does not terminate",
}


def pages() -> dict[Path, str]:
    """Each page, as Markdown."""
    return {PAGES / f"{name}.md": page(name) for name in SKILLS}


def page(name: str) -> str:
    """The page of a skill, as Markdown."""
    config = {key.name.removeprefix("skill."): key for key in options.keys("skill", name)}
    env = make_env(name, depth_size=keys_default("policy", "light", "image_size"))
    said = sections(inspect.getdoc(inspect.getmodule(skill_class(name))))
    shown = [f"![Three moments of one episode](../images/skills/{name}.png)", ""] if _picture(name).exists() else []
    source = said.get("Sources") or said.get("Source")
    parts = [
        f"# {name.replace('_', ' ').capitalize()}", "", wrapped(said["first"]), "", *shown,
        f"All of it is in [`skills/{name}.py`](../../skills/{name}.py).",
        "[`docs/skill_pages.py`](../skill_pages.py) writes this page from it.", "",
        "## Start", "", wrapped(said["Start"]), "",
        "## Observation", "", wrapped(said["Observation"]), "", *observation_table(env), "",
        "## Action", "", wrapped(said["Action"]), "",
        "Numbers in [-1, 1], in this order (`skill.action_parts`):", "", *action_table(env), "",
        "## Reward", "",
        "The sum of these terms, each times its scale (`skill.reward_scales.<term>`); logged as `reward/<term>`.", "",
        *reward_table(env, config), "",
        "## Success and failure", "", wrapped(f"**Success**: {said['Success']}"), "",
        wrapped(f"**Failure**: {said['Failure']}"), "",
        *failure_table(env, config), "", "Logged as `failure/<name>`, 0 or 1 per episode.", "",
        "## Settings", "", "Each is `skill.<setting>=<value>` on the command line.", "", *settings_table(config), "",
        *([wrapped(f"Source: {source}"), ""] if source else []),
        *(policy_section(pretrained.card(name)) if name in pretrained.names() else []),
    ]
    return "\n".join(parts).rstrip() + "\n"


def policy_section(card: dict[str, Any]) -> list[str]:
    """What the policy that comes with the package is, from its card."""
    elsewhere = [row for row in card.get("homes", []) if "furniture" in row["homes"] or "dataset" in row["protocol"]]
    alone = [(row["protocol"].split(", ")[0], SPLITS[row["split"]] if "split" in row else row["homes"],
              str(row["episodes"]), _share(row, "success"),
              ", ".join(f"{100 * share:.1f} % {kind.replace('_', ' ')}" for kind, share in row["failures"].items()))
             for row in [*card["evaluations"], *elsewhere]]
    if missing := [key for key in ("plans", "limits") if not card.get(key)]:
        raise SystemExit(f"the card of {card['skill']} has no {missing[0]}: see benchmarks/publish_policy.py.")
    measured = {(row["scenario"], row["split"], row["protocol"]): _share(row, "success_015") for row in card["plans"]}
    there = {row["protocol"] for row in card["plans"]}
    protocols = [name for name in ("honest", "noisy", "oracle", "paper") if name in there]
    plans = [(scenario.replace("_", " ").capitalize(), SPLITS[split],
              *(measured.get((scenario, split, protocol), "") for protocol in protocols))
             for scenario, split in dict.fromkeys((row["scenario"], row["split"]) for row in card["plans"])]
    recipe = (f"by [its recipe](../../skills/recipes/{card['recipe']}.yaml)" if "recipe" in card
              else "by the commands in its card")
    millions, hours = pretrained.steps(card) / 1e6, pretrained.hours(card)
    file = f"skills/pretrained/{card['skill']}.yaml"
    averaged = (f" Its weights are [an average](../findings/averaged_policies.md): {100 * card['kept']['share']:.0f} % "
                "are those of the policy before." if "kept" in card else "")
    text = (f"A policy of the {card['robot']}, trained for {millions:.1f} million steps, {hours:.1f} hours, "
            f"{recipe}; the last lesson with commit `{card['commit'][:7]}`.{averaged} "
            f"Its card, [`{file}`](../../{file}), holds these figures and the lessons. By itself, drawn actions, by "
            "[protocol](../protocols.md):")
    return [
        "## The policy that comes with the package", "", wrapped(text), "",
        *table(("protocol", "homes", "n", "success", "failures"), alone), "",
        *(wrapped(f"When episodes [go on after their success](../evaluation.md#success-once-and-at-the-end), "
                  f"{100 * row['success_once']:.1f} % have it once and {_share(row, 'success_at_end')} at the end "
                  f"({row['protocol']}, {SPLITS[row['split']]} homes, n = {row['episodes']}).") + "\n"
          for row in card.get("to_the_end", [])),
        wrapped("Whole tasks in which it takes part, within 0.15 m, by [protocol](../planner.md), n = "
                f"{min(row['episodes'] for row in card['plans'])} each ([commands](../results.md#scenarios)):"), "",
        *table(("scenario", "homes", *(f"`planner={protocol}`" for protocol in protocols)), plans), "",
        "Limits:", "", *(wrapped(_linked(limit), "- ") for limit in card["limits"]),
    ]


def _share(row: dict[str, Any], key: str) -> str:
    low, high = row[f"{key}_interval_95"]
    return f"{100 * row[key]:.1f} % ({100 * low:.1f} .. {100 * high:.1f})"


def _linked(text: str) -> str:
    """With links to the pages of docs/ that it names."""
    return re.sub(r"docs/((?:findings/)?\w+)\.md", r"[\1](../\1.md)", text)


def sections(text: str) -> dict[str, str]:
    """The docstring of a skill's file by its labels; what stands before the first one is `first`."""
    pieces = _LABEL.split(text)
    found = {"first": pieces[0].partition(": ")[2], **dict(zip(pieces[1::2], pieces[2::2]))}
    return {label: _sentence(" ".join(piece.split())) for label, piece in found.items()}


def observation_table(env) -> list[str]:
    """One row for each key that the policy sees."""
    rows = []
    for key, box in env.observation_space.items():
        meaning = OBSERVATIONS[key][2] if key in OBSERVATIONS else (
            "depth image of the head camera, 0..1 over 10 m (`policy.image_size`; absent for `policy=blind`)")
        rows.append((key, " x ".join(map(str, box.shape)), bounds(box), meaning))
    return table(("key", "shape", "range", "meaning"), rows)


def bounds(box) -> str:
    """From where to where its numbers go: of each where they differ."""
    pairs = list(zip(box.low.ravel().tolist(), box.high.ravel().tolist()))
    return ", ".join(f"{low:.4g} .. {high:.4g}" for low, high in (pairs if len(set(pairs)) > 1 else pairs[:1]))


def action_table(env) -> list[str]:
    """One row for each part of the action."""
    speeds = (keys_default("sim", "mujoco", key) for key in ("base_speed_m_s", "base_turn_rad_s"))
    meaning = action_meanings(env.sim.robot, *speeds)
    return table(("part", "numbers", "meaning"),
                 [(part, str(where.stop - where.start), meaning[part]) for part, where in env.action_parts])


def reward_table(env, config: dict[str, Key]) -> list[str]:
    """One row for each reward term."""
    scales = env.skill.reward_scales.items()
    rows = [(term, f"{scale:g}", config[f"reward_scales.{term}"].text) for term, scale in scales]
    return table(("term", "scale", "when"), rows)


def failure_table(env, config: dict[str, Key]) -> list[str]:
    """One row for each way in which an episode ends without success."""
    rows = [(name, config[f"reward_scales.{name}"].text) for name in env.skill.failures]
    return table(("failure", "because"), rows + [(name, _TRUNCATIONS[name]) for name in ENV_FAILURES])


def settings_table(config: dict[str, Key]) -> list[str]:
    """One row for each setting of the skill but the reward scales."""
    rows = [(name, f"`{shown(key.default)}`", _OF_GROUP.get(name.split(".")[0], "") + key.text)
            for name, key in config.items() if name != "name" and not name.startswith("reward_scales.")]
    return table(("setting", "default", "meaning"), rows)


def keys_default(group: str, choice: str, name: str):
    """The value of a setting that a choice brings."""
    return options.values(group, choice)[f"{group}.{name}"]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def make_picture(name: str) -> None:
    """Save three moments of the first solved episode that is long enough. Raises SystemExit when there is none."""
    env = make_env(name, split="val", render_mode="rgb_array")
    for episode in range(EPISODES):
        frames = solved_episode(env, EXPERTS[name], episode)
        if len(frames) >= LEAST_STEPS:
            _picture(name).parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(strip(frames)).quantize(256).save(_picture(name), optimize=True)
            return
    raise SystemExit(f"the expert solves none of the first {EPISODES} episodes of {name} that take {LEAST_STEPS} steps")


def solved_episode(env, expert_class: type, episode: int) -> list[np.ndarray]:
    """The video frames of an episode as the expert solves it; none when it does not."""
    observation, _ = env.reset(options={"episode": episode})
    expert, frames, over = expert_class(env.sim, env.skill), [], False
    while not over:
        frames.append(compose(env.render(), observation["depth"], [], title=env.skill.name))
        observation, _, terminated, truncated, info = env.step(expert.act())
        over = terminated or truncated
    frames.append(compose(env.render(), observation["depth"], [], title=env.skill.name))
    return frames if info["success"] else []


def _picture(name: str) -> Path:
    return PICTURES / f"{name}.png"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the pages of the skills from their code.")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--pictures", nargs="*", choices=list(SKILLS), metavar="SKILL")
    args = parser.parse_args()
    for name in [] if args.pictures is None else args.pictures or EXPERTS:
        if name in EXPERTS:
            make_picture(name)
    sys.exit(write(pages(), "skill_pages", args.check))
