"""Bad input: one clear sentence, exit status 2, nothing written."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from rearrange.home.apartments.episodes import write_episodes
from rearrange.home.episodes.generator import generate_episode
from tests.e2e.front_door import listing, rearrange


def refused(directory, line: str | list[str], *words: str) -> str:
    """Run a command that must be refused; the sentence it says, in which all of `words` must be."""
    before = listing(directory)
    done = rearrange(directory, *(line.split() if isinstance(line, str) else line))
    assert done.returncode == 2, f"{line}: status {done.returncode}\n{done.stdout}\n{done.stderr[-3000:]}"
    assert listing(directory) == before, f"{line} wrote something"
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("rearrange"), done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    return done.stderr


@pytest.mark.parametrize("line, words",
                         [("trian skill=pick", ("'train'",)), ("train skill=pik", ("skill=pick",)),
                          ("train skill=pick ppo.learning_rat=1e-3", ("'ppo.learning_rate'",)),
                          ("train skill=pick +ppo.learning_rat=1e-3", ("'ppo.learning_rate'",)),
                          ("train skill=pick ppo.schedule=cosin", ("ppo.schedule=cosin", "cosine")),
                          ("train skill=pick ppo.clip=abc", ("ppo.clip=abc", "a number")),
                          ("eval skill=pick agent=randm", ("agent=randm", "random")),
                          ("train skill=pick steps=-5", ("steps=-5", "greater than 0")),
                          ("train skill=pick trainer.num_envs=0", ("trainer.num_envs=0", "greater than 0")),
                          ("train skill=pick trainer.num_workers=-1", ("trainer.num_workers=-1", "from 0 to 1024")),
                          ("eval skill=pick episodes=0", ("episodes=0", "greater than 0")),
                          ("eval skill=pick video=-1", ("video=-1", "from 0 to")),
                          ("eval skill=pick workers=0", ("workers=0", "greater than 0")),
                          ("eval hab=tidy_house agent=monolithic",
                           ("no policy of tidy_house", "outputs/train/tidy_house", "rearrange train hab=")),
                          ("train skill=pick resume=true name=nobody", ("no run", "nobody"))])
def test_settings(tmp_path, line, words):
    refused(tmp_path, line, *words)


@pytest.mark.parametrize("line, words", [
    ("train skill=pick device=gpu", ("device=gpu is not a device: choose auto, cpu, cuda or cuda:0.",)),
    ("train skill=pick device=meta", ("device=meta",)),
    ("train skill=pick policy=light policy.image_size=3", ("policy.image_size=3 is too small", "policy=blind")),
    ("train skill=pick policy.log_std_init=[1,2]", ("policy.log_std_init", "10 actions")),
    ("train skill=pick policy.mean_init=[1,2]", ("policy.mean_init", "10 actions")),
    ("train skill=pick skill.action_parts=[leg]", ("leg", "arm, grip, base")),
    ("train skill=pick skill.observation_keys=[smell]", ("smell", "obj_start")),
    ("train skill=pick skill.rest_position_m=[1]", ("rest_position_m",)),
])
def test_settings_that_only_the_parts_can_judge(tmp_path, line, words):
    refused(tmp_path, line, *words)


@pytest.fixture(scope="module")
def spoiled(trained, tmp_path_factory):
    """A folder of files that are not what they should be."""
    import torch
    from gymnasium import spaces

    from trainer.checkpoint import load_checkpoint, policy_config, policy_content, space_from_plain
    from trainer.policy import Policy

    folder = tmp_path_factory.mktemp("spoiled")
    content = load_checkpoint(trained.run)
    torch.save(content | {"meta": content["meta"] | {"skill": "place"}}, folder / "place.pt")
    torch.save(content | {"meta": {}}, folder / "pendulum.pt")
    torch.save(content | {"format": 99}, folder / "future.pt")
    torch.save({"weights": torch.zeros(3)}, folder / "tensor.pt")
    seen, actions = space_from_plain(content["observation_space"]), space_from_plain(content["action_space"])
    config = replace(policy_config(content["policy_config"]), log_std_init=-0.5)
    shape = seen["joint"].shape[0]
    for name, space, action in (
        ("other_observation.pt", spaces.Dict({**seen.spaces, "joint": spaces.Box(-1, 1, (shape + 2,))}), actions),
        ("other_action.pt", seen, spaces.Box(-1, 1, (actions.shape[0] + 1,))),
    ):
        torch.save(content | policy_content(Policy(space, action, config), space, action), folder / name)
    whole = next((trained.run / "checkpoints").glob("*.pt")).read_bytes()
    (folder / "truncated.pt").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.pt").write_bytes(b"")
    (folder / "letter.pt").write_text("Dear reader,\n")
    (folder / "letter.json").write_text("Dear reader,\n")
    (folder / "menu.json").write_text(json.dumps({"soup": 3}))
    (folder / "none.json").write_text(json.dumps({"episodes": []}))
    (folder / "half.json.gz").write_bytes(b"\x1f\x8b\x08\x00half")
    return folder


@pytest.mark.parametrize("file, words", [
    ("place.pt", ("skill place", "not of pick")),
    ("pendulum.pt", ("pendulum.pt",)),
    ("future.pt", ("format 99",)),
    ("other_observation.pt", ("another network", "'joint'")),
    ("other_action.pt", ("another network", "11 actions")),
    ("truncated.pt", ("not a complete checkpoint",)),
    ("empty.pt", ("not a complete checkpoint",)),
    ("letter.pt", ("not a complete checkpoint",)),
    ("tensor.pt", ("not a checkpoint of rearrange",)),
    ("nowhere.pt", ("no checkpoint at nowhere.pt",)),
    (".", ("no checkpoint at .",)),
])
def test_checkpoints(spoiled, file, words):
    refused(spoiled, ["eval", "skill=pick", f"checkpoint={file}", "episodes=2"], *words)


@pytest.mark.parametrize("file, words", [
    ("other_action.pt", ("another network",)),
    ("truncated.pt", ("not a complete checkpoint",)),
    ("nowhere.pt", ("no checkpoint at nowhere.pt",)),
])
def test_checkpoints_to_begin_with(spoiled, file, words):
    refused(spoiled, ["train", "skill=pick", "experiment=debug", f"checkpoint={file}"], *words)


@pytest.mark.parametrize("file, words", [
    ("letter.json", ("letter.json is not an episode file",)),
    ("menu.json", ("menu.json is not an episode file",)),
    ("none.json", ("none.json", "no episodes")),
    ("half.json.gz", ("half.json.gz is not an episode file",)),
    ("nowhere.json", ("nowhere.json", "No such file")),
    ("place.pt", ("place.pt is not an episode file",)),
])
def test_episode_files(spoiled, file, words):
    refused(spoiled, ["eval", "skill=pick", "agent=zero", f"sim.episodes={file}", "episodes=2"], *words)


@pytest.mark.parametrize("command", ["train skill=pick experiment=debug", "eval skill=pick agent=zero episodes=3"])
def test_the_last_episode_of_a_file_is_tried_before_anything_starts(spoiled, command):
    episodes = [generate_episode("pick", "train", index) for index in range(3)]
    episodes[2] = replace(episodes[2], articulated={"drawer_99": 0.1})
    write_episodes(spoiled / "third.json", episodes)
    refused(spoiled, [*command.split(), "sim.episodes=third.json"], "'pick/train/2'", "no joint 'drawer_99'")


def test_an_existing_run_is_never_overwritten(trained):
    refused(trained.home, "train skill=pick experiment=debug name=tiny", "exists already", "resume=true", "name=")


def test_a_finished_run_is_not_resumed(trained):
    refused(trained.home, "train skill=pick name=tiny resume=true", "is finished", "resume=force")


def test_a_resumed_run_keeps_its_settings(trained):
    refused(trained.home, "train skill=pick name=tiny resume=true seed=4", "seed: 3 -> 4", "resume=force")


def test_a_resumed_run_keeps_its_network(trained):
    """Also by force: there is no way to go on with other weights."""
    refused(trained.home, "train skill=pick name=tiny resume=force steps=9999 policy.hidden_size=16", "another network")


def test_a_resumed_run_does_not_begin_with_another_policy(trained):
    words = "train skill=pick name=tiny resume=force steps=9999 checkpoint=pretrained"
    refused(trained.home, words, "has checkpoints of its own", "leave checkpoint= out", "name=")


def test_no_scenario_has_a_published_policy(trained):
    refused(trained.home, "train hab=tidy_house experiment=debug checkpoint=pretrained", "checkpoint=pretrained is "
            "for skill=")


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("here is no folder")
    refused(tmp_path, "train skill=pick experiment=debug output=file", "cannot write to", "output=")
    refused(tmp_path, "eval skill=pick agent=zero output=file/below", "cannot write to", "output=")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_place_without_permission(tmp_path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    refused(tmp_path, "train skill=pick experiment=debug output=locked", "no permission", "output=")
