"""The contact sheet of docs/seeing.md: `python -m docs.seeing_picture` writes docs/images/seeing.png."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from planner.scenario_env import make_env as make_scenario
from rearrange import navigation
from rearrange.home.pictures.overlay import depth_picture, draw_text
from skills import make_env

FILE = Path(__file__).resolve().parent / "images" / "seeing.png"
SIZE = 192
_ALL = ["rgb", "segmentation", "arm_rgb", "arm_depth"]
_OF_HOME: dict[str, Any] = {"split": "val", "num_layouts": 8, "depth_size": SIZE, "camera_size": SIZE}
_NUMBERS_RGB = np.random.default_rng(5).integers(40, 256, (1024, 3)).astype(np.uint8)


def shown(name: str, image: np.ndarray) -> np.ndarray:
    """An observation as a picture (SIZE, SIZE, 3)."""
    if name.endswith("rgb"):
        return image
    return _NUMBERS_RGB[image[:, :, 0]] if name == "segmentation" else depth_picture(image)


def sheet() -> np.ndarray:
    """Rows of pictures, each with a caption."""
    pictures = []
    for skill, episode in (("pick", 6), ("place", 4)):
        seen, _ = make_env(skill, observations=_ALL, **_OF_HOME).reset(options={"episode": episode})
        pictures += [(name, shown(name, seen[name])) for name in (_ALL[0], "depth", *_ALL[1:])]
    for name, settings in (("random_colors=0.3", {"random_colors": 0.3}), ("random_colors=1", {"random_colors": 1.0}),
                           ("random_light=1", {"random_light": 1.0}),
                           ("camera: 0.1 m, 10 deg", {"random_camera_m": 0.1, "random_camera_deg": 10.0}),
                           ("depth: noise 1, holes 0.1", {"random_depth_noise": 1.0, "random_depth_holes": 0.1})):
        seen, _ = make_env("pick", observations=["rgb"], **_OF_HOME, **settings).reset(options={"episode": 6})
        pictures.append((name, shown("depth", seen["depth"]) if "depth" in name else seen["rgb"]))
    for name in ("tidy_house", "set_table"):
        seen, _ = make_scenario(name, observations=["rgb"], **_OF_HOME).reset(options={"episode": 1})
        pictures.append((f"{name}: rgb", seen["rgb"]))
    of_nav = {"split": "val", "num_homes": 8, "depth_size": SIZE, "camera_size": SIZE,
              "observations": ["rgb", "segmentation"]}
    seen, _ = navigation.make_env("pointnav", **of_nav).reset(options={"episode": 4})
    pictures += [(f"pointnav: {name}", shown(name, seen[name])) for name in ("rgb", "depth", "segmentation")]
    for caption, picture in pictures:
        draw_text(picture, (5, 3), caption, 13, shadow=True)
    framed = [np.pad(picture, ((2, 2), (2, 2), (0, 0)), constant_values=255) for _, picture in pictures]
    return np.concatenate([np.concatenate(framed[i:i + 5], axis=1) for i in range(0, len(framed), 5)])


if __name__ == "__main__":
    Image.fromarray(sheet()).quantize(256, dither=Image.Dither.NONE).save(FILE, optimize=True)
    print(FILE, FILE.stat().st_size)
