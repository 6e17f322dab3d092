"""Files and settings that attack: pipes, devices, what inflates, nests or asks for more than there is. One sentence,
exit status 2, nothing written, nothing hangs.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.front_door import finish, listing, start
from tests.e2e.test_bad_input import refused

WITHIN_S = 60.0
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdefgh", "bcdefghi"))


@pytest.fixture(scope="module")
def place(trained, tmp_path_factory) -> Path:
    """A folder of such files."""
    import torch

    from rearrange.home.apartments import episodes

    folder = tmp_path_factory.mktemp("attacked")
    for name in ("pipe.json", "pipe.yaml", "pipe.pt", "pipe.html"):
        os.mkfifo(folder / name)
    with gzip.open(folder / "inflates.json.gz", "wb", compresslevel=1) as file:
        for _ in range(episodes.MOST_BYTES // (1 << 20) + 1):
            file.write(b" " * (1 << 20))
    (folder / "deep.json").write_text("[" * 100_000)
    (folder / "laughs.yaml").write_text(LAUGHS)
    (folder / "deep.yaml").write_text("a: " + "[" * 100_000)
    (folder / "large.yaml").write_text("a: 1 # " + "." * (1 << 21))
    crowd = [
        ["002_master_chef_can.object_config.json", [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]]] * 3000
    (folder / "crowd.json").write_text(
        json.dumps({"episodes": [{"scene_id": "train/0", "rigid_objs": crowd, "targets": {}}]}))
    objects = ", ".join(["any"] * 3000)
    lists = "".join(f"{key}: [{objects}]\n" for key in ("objects", "starts", "goals"))
    (folder / "many.yaml").write_text(f"name: many\nproblem: tidy_house\n{lists}")
    newest = max((trained.run / "checkpoints").glob("*.pt"))
    content = torch.load(newest, weights_only=True)
    for name, changed in {
        "huge.pt": {"policy_config": content["policy_config"] | {"hidden_size": 10**7}},
        "nan.pt": {"policy": {key: value * float("nan") for key, value in content["policy"].items()}},
        "settings.pt": {"meta": content["meta"] | {"env": content["meta"]["env"] | {"rest_radius_m": "banana"}}},
    }.items():
        torch.save(content | changed, folder / name)
    shutil.copytree(trained.run, folder / "outputs/train/pick/hurt", symlinks=True)
    torch.save(content | {"counters": None}, folder / "outputs/train/pick/hurt/checkpoints" / newest.name)
    (folder / "outputs/train/pick/hurt/status.json").write_text(json.dumps({"status": "stopped", "result": {}}))
    made = folder / "outputs/eval/pick/made"
    made.mkdir(parents=True)
    (made / "metrics.json").write_text(json.dumps({"skill": "pick", "episodes": 2, "success": 0.5}))
    (made / "config.yaml").write_text("a: " + "[" * 100_000)
    (made / "overrides.yaml").write_text(LAUGHS)
    return folder


@pytest.mark.parametrize(
    "line, words",
    [("report outputs/eval out=/dev/full", ("/dev/full", "no regular file")),
     ("report outputs/eval out=/dev/zero", ("/dev/zero", "no regular file")),
     ("report outputs/eval out=pipe.html", ("pipe.html", "no regular file")),
     ("eval skill=pick agent=zero sim.episodes=pipe.json", ("pipe.json", "no regular file")),
     ("eval skill=pick agent=zero sim.episodes=/dev/zero", ("/dev/zero", "no regular file")),
     ("eval skill=pick agent=zero sim.episodes=inflates.json.gz", ("inflates.json.gz", "more than 537 MB")),
     ("eval skill=pick agent=zero sim.episodes=crowd.json", ("crowd.json, episode 0", "3,000 objects", "room for 300")),
     ("eval skill=pick agent=zero sim.episodes=deep.json", ("deep.json is not an episode file",)),
     ("eval skill=pick checkpoint=pipe.pt", ("pipe.pt", "no regular file")),
     ("eval skill=pick checkpoint=huge.pt", ("huge.pt is damaged", "policy.hidden_size=10000000 is not allowed")),
     ("eval skill=pick checkpoint=nan.pt", ("nan.pt is damaged", "NaN")),
     ("eval skill=pick checkpoint=settings.pt", ("settings.pt is damaged", "rest_radius_m", "banana")),
     ("eval hab=tidy_house agent=expert skills.pick=nan.pt", ("nan.pt is damaged", "NaN")),
     ("eval hab=tidy_house agent=expert skills.pick=settings.pt", ("settings.pt is damaged", "banana")),
     ("eval hab=pipe.yaml", ("pipe.yaml",)), ("eval hab=laughs.yaml", ("laughs.yaml", "the alias *a")),
     ("eval hab=deep.yaml", ("deep.yaml", "nested more than 20 deep")),
     ("eval hab=large.yaml", ("large.yaml", "more than 1 MB")), ("eval hab=many.yaml", ("many", "3000 times any")),
     ("train skill=pick experiment=debug checkpoint=nan.pt", ("nan.pt is damaged", "NaN")),
     ("train skill=pick name=hurt resume=true", ("is damaged", "counters is None")),
     ("train skill=pick trainer.rollout_steps=1e12", ("trainer.rollout_steps=1000000000000", "at most 1000000")),
     ("train skill=pick policy=blind trainer.num_envs=16384 trainer.rollout_steps=1000000", ("would take", "GB of "
                                                                                             "memory")),
     ("train skill=pick policy.lstm_layers=1000", ("policy.lstm_layers=1000", "from 0 to 64")),
     ("train skill=pick policy.lstm_layers=64 policy.hidden_size=16384", ("the network", "GB of memory")),
     ("bench sim depth_size=1", ("depth_size=1",)), ("bench train skill=warp", ("skill=warp",)),
     ("eval skill=all hab=all", ("skill=all and hab=all are both given",)), ("doctor data=", ("data=<folder>",))])
def test_refused(place, line, words):
    refused(place, line, *words)


def test_a_checkpoint_that_cannot_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    from trainer import checkpoint
    from trainer.checkpoint import CheckpointError, load_checkpoint

    def refuse(path):  # root may read every file
        raise PermissionError(13, "Permission denied", str(path))

    (tmp_path / "mine.pt").touch()
    monkeypatch.setattr(checkpoint, "open_regular", refuse)
    with pytest.raises(CheckpointError, match="mine.pt cannot be read: Permission denied"):
        load_checkpoint(tmp_path / "mine.pt")


@pytest.mark.parametrize("title", [b"caf\xe9", "café".encode()])
def test_a_report_of_settings_that_attack_and_a_title_that_is_no_text(place, title):
    """Settings are shown as they are and not made into values; a title of other bytes than UTF-8 does not end the
    report.
    """
    before = listing(place)
    done = finish(start(place, "report", "outputs/eval/pick/made", "out=page.html", os.fsdecode(b"title=" + title)),
                  WITHIN_S)
    assert done.returncode == 0, done.stderr
    page = (place / "page.html").read_text(encoding="utf-8")
    assert "<h1>caf" in page and "[[[[" in page
    (place / "page.html").unlink()
    assert [row for row in listing(place) if row[0] != "."] == before


def test_runs_with_pipes_in_them_are_reported_without_them(place):
    hurt = place / "outputs/eval/pick/piped"
    hurt.mkdir()
    for name in ("config.yaml", "overrides.yaml", "git.txt", "plan.txt", "status.json", "episodes.csv"):
        os.mkfifo(hurt / name)
    (hurt / "metrics.json").write_text(json.dumps({"skill": "pick", "episodes": 2, "success": 0.5}))
    try:
        done = finish(start(place, "report", "outputs/eval", "out=page.html"), WITHIN_S)
        assert done.returncode == 0 and "episodes.csv cannot be read: it is no regular file" in done.stderr
        (place / "page.html").unlink()
    finally:
        shutil.rmtree(hurt)
