"""Write an episode file of Pick or Place for training where the hand has little room: under boards, and in fridges.

    python -m benchmarks.under_boards place count=500 out=under_boards/place.json.gz
    rearrange train skill=place sim.furniture=both sim.episodes=under_boards/place.json.gz sim.episodes_share=0.3 ...

They are those of wide training homes whose object lies there, or has its goal there: one in six of all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from rearrange.home.apartments.episodes import Episode, write_episodes
from rearrange.home.apartments.kept_layouts import scene_layout
from rearrange.home.apartments.parts import Receptacle
from rearrange.home.episodes.generator import generate_episode
from rearrange.home.errors import UserError
from rearrange.home.settings.environment import HomeSettings

SKILLS = {"pick": "target_receptacles", "place": "goal_receptacles"}
FRIDGE_BOARD_M, LITTLE_ROOM_M, BOARD_M = 0.9, 0.3, 0.45  # from this height on; with less above than this


def has_little_room(place: Receptacle) -> bool:
    """A board of a fridge that is high or has another one close above it, or a board of a shelf that is not low."""
    if place.kind == "fridge":
        return place.center_m[2] > FRIDGE_BOARD_M or place.clearance_m < LITTLE_ROOM_M
    return place.kind == "shelf" and place.center_m[2] > BOARD_M


def episodes(skill: str) -> Iterator[Episode]:
    """Those episodes of a skill, without an end."""
    index, homes = 0, HomeSettings().num_layouts
    while True:
        episode = generate_episode(skill, "wide/train", index, homes)
        (name,) = getattr(episode, SKILLS[skill])
        if has_little_room(scene_layout(episode.scene).receptacle(name)):
            yield episode
        index += 1


def main(skill: str, count: int, out: Path) -> None:
    """Write the first `count` of them."""
    found = episodes(skill)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_episodes(out, [next(found) for _ in range(count)])
    print(f"{out}: {count} episodes of {skill}")


if __name__ == "__main__":
    given = dict(word.partition("=")[::2] for word in sys.argv[2:])
    if len(sys.argv) < 2 or sys.argv[1] not in SKILLS or not given.get("count", "500").isdigit() or given.keys() - {
            "count", "out"}:
        sys.exit(__doc__)
    try:
        main(sys.argv[1], int(given.get("count", "500")), Path(given.get("out", f"{sys.argv[1]}.json.gz")))
    except (UserError, OSError) as error:
        sys.exit(f"benchmarks.under_boards: {error}")
