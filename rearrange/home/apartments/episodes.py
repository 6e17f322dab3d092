"""Episodes: what stands where and what is to be moved, read from and written to Habitat's episode files.

Files follow habitat-lab's RearrangeEpisode schema (`.json` or `.json.gz`), in Habitat's y-up frame
(`rearrange.home.axis_conventions`). Files of `rearrange scenes export` hold some fields twice: as Habitat needs them,
and as ours in `info`. Ours count here.
"""

from __future__ import annotations

import glob
import gzip
import json
import math
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from rearrange.home.axis_conventions import Pose, matrix_to_pose, pose_to_matrix, to_y_up, to_z_up
from rearrange.home.errors import NoStartPose, UserError
from rearrange.home.files import parse_json, read_bytes, unzipped

__all__ = ["Episode", "Handoff", "Marker", "NoStartPose", "read_episodes", "repeated_ids", "write_episodes"]

OUR_FIELDS = "rearrange"
"""Key of `info` under which a file for Habitat keeps the fields that name things as our homes do."""
_OBJECT_FILE = ".object_config.json"
OBJECT_PATHS = ("data/objects/ycb/configs/",)
_DATASET = "rearrange"
MOST_OBJECTS = 300  # of an episode; HAB's have 30
MOST_BYTES = 1 << 29  # of an episode file, without its compression; one of 10,000 episodes has some 200 MB
_MOST = 1e9  # of a number in a file; a greater one, or an infinite one, is not meant
# First word of the name of our joint -> Habitat's body.
_ARTICULATED_HANDLES = {"drawer": "kitchen_counter_:0000", "fridge": "fridge_:0000"}


@dataclass(frozen=True)
class Marker:
    """A named point on an articulated body, such as a handle; offset in metres in the link's frame."""

    name: str
    object: str
    link: str
    offset: tuple[float, float, float]


@dataclass(frozen=True)
class Handoff:
    """State in which a plan handed over to a skill; the robot stands at `robot_start`.

    Older files lack the arm, which is then in its start posture, and how the robot held what it holds.
    """

    skill: str
    about: int | str  # the object that is picked or placed, or the joint that is opened or closed
    held: int | None = None  # the object in the hand
    held_pose: Pose | None = None  # its middle and quaternion (w, x, y, z), world frame
    arm_rad: tuple[float, ...] | None = None  # angles of the seven arm joints


@dataclass(frozen=True)
class Episode:
    """One arrangement of a home.

    Objects are referred to by their index in `objects`. `targets` holds the goal pose of each object that is to be
    moved, and `target_receptacles` and `goal_receptacles` name, in the order of `targets`, what each stands on and
    belongs on. `articulated` holds joint positions (m or rad) of drawers and doors that are not closed. `robot_start`
    is x, y (m), yaw (rad); None leaves it to the skill.
    """

    id: str
    scene: str
    objects: tuple[str, ...]
    start_poses: tuple[Pose, ...]
    targets: dict[int, Pose] = field(default_factory=dict)
    target_receptacles: tuple[str, ...] = ()
    goal_receptacles: tuple[str, ...] = ()
    articulated: dict[str, float] = field(default_factory=dict)
    markers: tuple[Marker, ...] = ()
    labels: dict[int, str] = field(default_factory=dict)
    robot_start: tuple[float, float, float] | None = None
    handoff: Handoff | None = None  # a skill begins just there, not where it looks for a start itself
    object_paths: tuple[str, ...] = OBJECT_PATHS  # where Habitat looks for objects that its data set does not have


def read_episodes(path: str | Path) -> list[Episode]:
    """Read an episode file, or all that match a pattern with `*`, in order of their names.

    Raises UserError for a file that is none; it names the file, the field and what was expected.
    """
    path = Path(path)
    if "*" in str(path):
        if not (found := sorted(glob.glob(str(path)))):
            raise UserError(f"no episode file matches {path}.")
        return [episode for each in found for episode in read_episodes(glob.escape(each) if "*" in each else each)]
    try:
        raw = read_bytes(path, MOST_BYTES)
    except OSError as error:
        raise UserError(f"cannot read the episode file {path}: {error.strerror or error}.") from None
    return list(_parse(path, raw))


def repeated_ids(path: str | Path, episodes: Sequence[Any]) -> list[str]:
    """A sentence about ids that occur more than once in a file of episodes; nothing if each occurs once."""
    first: dict[str, int] = {}
    again = [(number, first[each.id]) for number, each in enumerate(episodes)
             if first.setdefault(each.id, number) != number]
    if not again:
        return []
    number, before = again[0]
    same = sum(replace(episodes[a], id="") == replace(episodes[b], id="") for a, b in again)
    scenes = sum(episodes[a].scene != episodes[b].scene for a, b in again)
    every = "its contents are" if len(again) == 1 else "the contents of all of them are"
    told = (f"{every} the same" if same == len(again) else f"{every} others, in other scenes" if scenes == len(again)
            else f"{every} others" if not same else f"the contents of {same} of them are the same")
    have = "has" if len(again) == 1 else "have"
    repeat = f"{len(again):,} of {len(episodes):,} episodes {have} an id that stands before"
    return [f"{path}: {repeat}, first {episodes[number].id!r} of episodes {before} and {number}; {told}"]


@lru_cache(maxsize=8)  # the environments of a process read the same file, one after another
def _parse(path: Path, raw: bytes) -> tuple[Episode, ...]:
    try:
        content = parse_json(unzipped(raw, MOST_BYTES, path))
    except (OSError, EOFError, ValueError, zlib.error) as error:
        why = f" ({getattr(error, 'strerror', None) or error})"
        raise UserError(f"{path} is not an episode file: expected JSON, or JSON compressed by gzip{why}.") from None
    if not isinstance(content, dict) or not isinstance(content.get("episodes"), list):
        raise UserError(f'{path} is not an episode file: expected an object with a list under "episodes".')
    return tuple(_Reader(str(path), i).episode(entry) for i, entry in enumerate(content["episodes"]))


def write_episodes(path: str | Path, episodes: list[Episode]) -> None:
    """Write an episode file; a name in `.gz` is compressed without a time stamp: same episodes, same bytes."""
    path = Path(path)
    text = json.dumps({"config": None, "episodes": [episode_to_habitat(episode) for episode in episodes]}).encode()
    try:
        path.write_bytes(gzip.compress(text, mtime=0) if path.suffix == ".gz" else text)
    except OSError as error:
        raise UserError(f"cannot write the episode file {path}: {error.strerror or error}.") from None


def object_handles(objects: tuple[str, ...]) -> list[str]:
    """Habitat's instance names: '013_apple_:0001' is the second apple."""
    seen: Counter[str] = Counter()
    handles = []
    for name in objects:
        handles.append(f"{name}_:{seen[name]:04d}")
        seen[name] += 1
    return handles


def episode_to_habitat(episode: Episode) -> dict:
    """An episode as an entry of a file, drawers and doors by our names."""
    handles = object_handles(episode.objects)
    states: dict[str, dict[str, float]] = {}
    for joint, value in episode.articulated.items():
        ours = _ARTICULATED_HANDLES.get(joint.split("_")[0], joint), joint
        handle, link = joint.split("|") if "|" in joint else ours
        states.setdefault(handle, {})[link] = value
    position, rotation = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]
    if episode.robot_start is not None:
        x, y, yaw = episode.robot_start
        position, rotation = [x, 0.0, -y], [0.0, math.sin(yaw / 2), 0.0, math.cos(yaw / 2)]
    return {"episode_id": episode.id, "scene_id": episode.scene, "scene_dataset_config": _DATASET,
            "additional_obj_config_paths": list(episode.object_paths), "start_position": position,
            "start_rotation": rotation,
            "info": {"object_labels": {handles[i]: label for i, label in episode.labels.items()}}
            | ({"handoff": asdict(episode.handoff)} if episode.handoff else {}), "ao_states": states,
            "rigid_objs": [[name + _OBJECT_FILE, pose_to_matrix(pose)]
                           for name, pose in zip(episode.objects, episode.start_poses)],
            "targets": {handles[i]: pose_to_matrix(pose) for i, pose in episode.targets.items()},
            "markers": [{"name": m.name, "type": "articulated_object",
                         "params": {"offset": list(to_y_up(m.offset)), "link": m.link, "object": m.object}}
                        for m in episode.markers],
            "target_receptacles": [_split_receptacle(name) for name in episode.target_receptacles],
            "goal_receptacles": [_split_receptacle(name) for name in episode.goal_receptacles]}


class _Reader:
    """Reads one entry of the list of episodes, and names file, episode and field when it is not what it should be."""

    def __init__(self, path: str, index: int) -> None:
        self._where = f"{path}, episode {index}"

    def _fail(self, name: str, expected: str, value: object) -> None:
        shown = json.dumps(value, default=str)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        raise UserError(f"{self._where}: field {name!r} should be {expected}, not {shown}.")

    def _get(self, entry: dict, name: str, kind: type, expected: str, default: object = ...) -> Any:
        if default is not ... and entry.get(name) is None:
            return default
        if name not in entry:
            raise UserError(f"{self._where}: field {name!r} is missing; expected {expected}.")
        if not isinstance(entry[name], kind):
            self._fail(name, expected, entry[name])
        return entry[name]

    def episode(self, entry: Any) -> Episode:
        if not isinstance(entry, dict):
            raise UserError(f"{self._where}: expected an object, not {type(entry).__name__}.")
        entry = entry | self._get(self._get(entry, "info", dict, "an object", {}), OUR_FIELDS, dict, "an object", {})
        rigid = self._get(entry, "rigid_objs", list, "a list of [object file, 4x4 matrix]")
        if len(rigid) > MOST_OBJECTS:
            raise UserError(f"{self._where}: field 'rigid_objs' has {len(rigid):,} objects; a home has room for "
                            f"{MOST_OBJECTS}.")
        for i, item in enumerate(rigid):
            if not (isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str)):
                self._fail(f"rigid_objs[{i}]", "[object file, 4x4 matrix]", item)
        objects = tuple(item[0].rsplit("/", 1)[-1].removesuffix(_OBJECT_FILE) for item in rigid)
        handles = {handle: i for i, handle in enumerate(object_handles(objects))}
        targets = self._get(entry, "targets", dict, "an object of handle: 4x4 matrix")
        info = self._get(entry, "info", dict, "an object", {})
        labels = info.get("object_labels") or {}
        if not isinstance(labels, dict):
            self._fail("info.object_labels", "an object of handle: label", labels)
        return Episode(
            id=str(entry.get("episode_id", "")), scene=str(self._get(entry, "scene_id", str, "the name of a scene")),
            objects=objects, start_poses=tuple(self._pose(f"rigid_objs[{i}]", item[1]) for i, item in enumerate(rigid)),
            targets={self._index("targets", h, handles): self._pose(f"targets[{h}]", m) for h, m in targets.items()},
            target_receptacles=self._receptacles(entry, "target_receptacles"),
            goal_receptacles=self._receptacles(entry, "goal_receptacles"), articulated=self._articulated(entry),
            markers=self._markers(entry),
            labels={self._index("info.object_labels", h, handles): str(label) for h, label in labels.items()},
            robot_start=self._robot_start(entry), handoff=self._handoff(info, len(objects)),
            object_paths=tuple(map(str,
                                   self._get(entry, "additional_obj_config_paths", list, "a list of folders", []))))

    def _handoff(self, info: dict, objects: int) -> Handoff | None:
        entry = self._get(info, "handoff", dict, "an object", None)
        if entry is None:
            return None
        about, held = entry.get("about"), entry.get("held")
        known = isinstance(about, str) or (type(about) is int and 0 <= about < objects)
        if not (isinstance(entry.get("skill"), str) and known
                and (held is None or type(held) is int and 0 <= held < objects)):
            self._fail("info.handoff", "an object of skill, about (an object's number or a joint) and held (a number "
                       "or null)", entry)
        held_pose, arm_rad = (None if entry.get(name) is None else read(f"info.handoff.{name}", entry[name])
                              for name, read in (("held_pose", self._exact_pose), ("arm_rad", self._seven)))
        return Handoff(entry["skill"], about, held, held_pose, arm_rad)

    def _seven(self, name: str, value: Any) -> tuple[float, float, float, float, float, float, float]:
        a, b, c, d, e, f, g = self._numbers(name, value, 7)
        return a, b, c, d, e, f, g

    def _exact_pose(self, name: str, value: Any) -> Pose:
        pose = self._seven(name, value)
        if abs(math.hypot(*pose[3:]) - 1.0) > 1e-3:
            self._fail(name, "a position and a unit quaternion (w, x, y, z)", value)
        return pose

    def _index(self, name: str, handle: str, handles: dict[str, int]) -> int:
        if handle not in handles:
            self._fail(name, f"handles of rigid_objs ({', '.join(list(handles)[:3])}, ...)", handle)
        return handles[handle]

    def _numbers(self, name: str, value: Any, count: int) -> list[float]:
        good = isinstance(value, (list, tuple)) and len(value) == count and all(
            isinstance(x, (int, float)) and not isinstance(x, bool) and abs(x) <= _MOST for x in value)
        if not good:
            self._fail(name, f"a list of {count} finite numbers of at most {_MOST:g}", value)
        return [float(x) for x in value]

    def _pose(self, name: str, value: Any) -> Pose:
        """From a matrix, or from the numbers of a pose: through a matrix it loses its last bits."""
        if isinstance(value, list) and len(value) == 7:
            return self._exact_pose(name, value)
        if not isinstance(value, (list, tuple)) or len(value) != 4:
            self._fail(name, "a 4x4 matrix given as four rows of four numbers", value)
        rows = [self._numbers(f"{name} row {i}", row, 4) for i, row in enumerate(value)]
        if not _is_rotation([row[:3] for row in rows[:3]]) or rows[3] != [0.0, 0.0, 0.0, 1.0]:
            self._fail(name, "a rigid transform (rotation and translation, last row 0 0 0 1)", value)
        return matrix_to_pose(rows)

    def _receptacles(self, entry: dict, name: str) -> tuple[str, ...]:
        pairs = self._get(entry, name, list, "a list of [receptacle, link or null]", [])
        for pair in pairs:
            if not (isinstance(pair, (list, tuple)) and len(pair) == 2
                    and (pair[0] is None or isinstance(pair[0], str))):
                self._fail(name, "a list of [receptacle, link or null]", pairs)
        # Habitat-Lab writes null for the receptacles of a stage.
        return tuple((handle or "") if link is None else f"{handle}|{link}" for handle, link in pairs)

    def _articulated(self, entry: dict) -> dict[str, float]:
        """Our own joints by their name; links of other scenes as 'body|link'."""
        states = self._get(entry, "ao_states", dict, "an object of body: {link: position}", {})
        joints = {}
        for handle, links in states.items():
            if not isinstance(links, dict):
                self._fail("ao_states", "an object of body: {link: position}", states)
            for link, value in links.items():
                ours = _ARTICULATED_HANDLES.get(str(link).split("_")[0]) == handle
                joints[link if ours else f"{handle}|{link}"] = self._numbers("ao_states", [value], 1)[0]
        return joints

    def _markers(self, entry: dict) -> tuple[Marker, ...]:
        markers = []
        for item in self._get(entry, "markers", list, "a list of markers", []):
            params = item.get("params") if isinstance(item, dict) else None
            if not isinstance(params, dict) or not {"offset", "link", "object"} <= set(params):
                self._fail("markers", "a list of {name, type, params: {offset, link, object}}", item)
            offset = to_z_up(*self._numbers("markers offset", params["offset"], 3))
            markers.append(Marker(str(item.get("name")), str(params["object"]), str(params["link"]), offset))
        return tuple(markers)

    def _robot_start(self, entry: dict) -> tuple[float, float, float] | None:
        """Ours where a file has it; Habitat leaves zeros when the task places the robot."""
        if entry.get("robot_start") is not None:
            x, y, yaw = self._numbers("robot_start", entry["robot_start"], 3)
            return x, y, yaw
        x, y, z = self._numbers("start_position", entry.get("start_position") or [0, 0, 0], 3)
        qx, qy, qz, qw = self._numbers("start_rotation", entry.get("start_rotation") or [0, 0, 0, 1], 4)
        if (x, y, z) == (0.0, 0.0, 0.0) and (qx, qy, qz) == (0.0, 0.0, 0.0):
            return None
        return (x, -z, 2.0 * math.atan2(qy, qw))


def _is_rotation(rows: list[list[float]]) -> bool:
    """Columns have length 1 and are square to one another, and it is no mirror."""
    x, y, z = zip(*rows)
    square = max(abs(sum(a * b for a, b in zip(one, other))) for one, other in ((x, y), (y, z), (z, x)))
    volume = sum(x[i] * (y[i - 2] * z[i - 1] - y[i - 1] * z[i - 2]) for i in range(3))
    return max(abs(math.hypot(*axis) - 1.0) for axis in (x, y, z)) <= 1e-2 and square <= 1e-2 and volume > 0.0


def _split_receptacle(name: str) -> list:
    handle, _, link = name.partition("|")
    return [handle, (int(link) if link.isdigit() else link) if link else None]
