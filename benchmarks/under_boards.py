"""Write an episode file of Pick or Place for training where the hand has little room: under boards, and in fridges.

    python -m benchmarks.under_boards place count=500 out=under_boards/place.json.gz
    python -m benchmarks.under_boards place count=1500 along=4 out=under_boards/place_along.json.gz
    rearrange train skill=place sim.furniture=both sim.episodes_share=0.5 "sim.episodes='under_boards/*'" ...

They are those of wide training homes whose object lies there, or has its goal there: one in six of all; with
`above=1.1` those on boards of fridges above that height in metres alone. With `along=` the expert acts in each, and so
many of the states that it passed through are kept, as handoffs. A policy that begins there finds the rest of the way,
and then the way there (Salimans and Chen 2018, "Learning Montezuma's Revenge from a Single Demonstration").
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from planner.execute import handed_over
from rearrange.home.apartments.episodes import Episode, write_episodes
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.parts import Receptacle
from rearrange.home.episodes.generator import generate_episode
from rearrange.home.errors import CannotStart, UserError
from rearrange.home.settings.environment import HomeSettings
from skills import make_env
from skills.experts import expert_class
from trainer.logs.progress import Progress

SKILLS = {"pick": "target_receptacles", "place": "goal_receptacles"}
FRIDGE_BOARD_M, BOARD_M = 0.9, 0.45  # boards of fridges and of shelves count from this height on,
LITTLE_ROOM_M = 0.3  # and those of fridges with less than this above them
HIGHEST_ASKED_M = 1.25  # few boards are higher: the arm reaches up to 1.3 m


def has_little_room(place: Receptacle) -> bool:
    """A board of a fridge that is high or has another one close above it, or a board of a shelf that is not low."""
    if place.kind == "fridge":
        return place.center_m[2] > FRIDGE_BOARD_M or place.clearance_m < LITTLE_ROOM_M
    return place.kind == "shelf" and place.center_m[2] > BOARD_M


def episodes(skill: str, above_m: float | None = None) -> Iterator[Episode]:
    """Those episodes of a skill, without an end; above_m: on boards of fridges above this height alone."""
    index, homes = 0, HomeSettings().num_layouts
    while True:
        episode = generate_episode(skill, "wide/train", index, homes)
        (name,) = getattr(episode, SKILLS[skill])
        place = scene_layout(episode.scene).receptacle(name)
        if has_little_room(place) and (above_m is None or place.kind == "fridge" and place.center_m[2] > above_m):
            yield episode
        index += 1


def states_along(skill: str, each: int, above_m: float | None = None) -> Iterator[Episode]:
    """Of each of these episodes, `each` states that its expert passed through on the way to its success."""
    env, rng = make_env(skill, depth_size=0, split="train", furniture="wide", any_start=True), np.random.default_rng(0)
    sim, task = env.unwrapped.sim, env.unwrapped.skill
    for episode in episodes(skill, above_m):
        try:
            env.reset(options={"episode": episode})
        except CannotStart:
            continue
        expert, states, over, info = expert_class(skill)(sim, task), [], False, {}
        while not over:
            states.append(handed_over(sim, episode, skill, next(iter(episode.targets)), len(states)))
            _, _, terminated, truncated, info = env.step(expert.act())
            over = terminated or truncated
        if info["is_success"]:
            late = range(len(states) // 5, len(states))
            yield from (states[k] for k in sorted(rng.choice(late, min(each, len(late)), replace=False).tolist()))


def main(skill: str, count: int, out: Path, along: int = 0, above_m: float | None = None) -> int:
    """Write the first `count` of them, or of the states along the ways of experts; Ctrl-C writes those that there are.
    Returns the exit status.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    found: list[Episode] = []
    with Progress(count, f"episodes of {skill}", out=sys.stderr, unit="episodes") as progress:
        try:
            wanted = states_along(skill, along, above_m) if along else episodes(skill, above_m)
            for episode in islice(wanted, count):
                found.append(episode)
                progress.update(len(found), {})
        except KeyboardInterrupt:
            progress.print("interrupted")
    if found:
        write_episodes(out, found)
        print(f"{out}: {len(found)} episodes of {skill}")
    return 0 if len(found) == count else 130


def _asked(words: list[str]) -> tuple[str, int, Path, int, float | None]:
    """The arguments of `main`. Raises UserError for what is none."""
    skill, given = words[0], dict(word.partition("=")[::2] for word in words[1:])
    if skill not in SKILLS:
        raise UserError(f"{skill} is none of {', '.join(SKILLS)}.")
    if lacking := given.keys() - {"count", "out", "along", "above"}:
        raise UserError(f"there is no {lacking.pop()}=; there are count=, out=, along= and above=.")
    for name in ("count", "along"):
        value = given.get(name, "1")
        if not (value.isascii() and value.isdigit() and int(value)):
            raise UserError(f"{name}={value} must be a whole number above 0.")
    out = Path(given.get("out", f"{skill}.json.gz"))
    if not out.name.endswith(".json.gz") or out.is_dir():
        raise UserError(f"out={out} must be a file *.json.gz.")
    above = given.get("above", "0")
    if not re.fullmatch(r"\d*\.?\d+", above) or float(above) > HIGHEST_ASKED_M:
        raise UserError(f"above={above} must be a height of at most {HIGHEST_ASKED_M}, in metres: no board is much "
                        "higher.")
    return skill, int(given.get("count", "500")), out, int(given.get("along", "0")), float(above) or None


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] == "--help":
        print(__doc__)
        sys.exit(0)
    try:
        sys.exit(main(*_asked(sys.argv[1:])))
    except (UserError, OSError) as error:
        print(f"benchmarks.under_boards: {error}", file=sys.stderr)
        sys.exit(2)
