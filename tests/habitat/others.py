"""A data set that says nothing of its being ours: exported homes with HAB's file conventions alone."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

NAME = "others"


def as_of_others(homes: Path, folder: Path) -> Path:
    """Copy an exported data set to `folder` under another name, without what only our reader understands, and with
    receptacles named as HAB's generator does: by object and link, null for those of a stage. Returns its configuration.
    """
    shutil.copytree(homes.parent, folder)
    (folder / "export.json").unlink()
    for path in (folder / "episodes").rglob("*.json.gz"):
        content = json.loads(gzip.decompress(path.read_bytes()))
        for entry in content["episodes"]:
            del entry["info"]["rearrange"]
            entry["scene_id"] = f"data/{NAME}/configs/scenes/{entry['scene_id']}"
            entry["markers"] = [marker for marker in entry["markers"] if "push_point" in marker["name"]]
            for field in ("target_receptacles", "goal_receptacles"):
                entry[field] = [[None, None] if link is None else [handle, link] for handle, link in entry[field]]
        path.write_bytes(gzip.compress(json.dumps(content).encode(), mtime=0))
    config = folder / f"{NAME}.scene_dataset_config.json"
    (folder / homes.name).rename(config)
    return config
