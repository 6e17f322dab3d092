"""Exported policies act as Player does: normalisation and memory included, step after step."""

from __future__ import annotations

import copy
import errno
import json
import os
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces

from eval.policy_choice import asked_for
from eval.policy_file import meanings
from eval.trained_policy import training_of
from rearrange.command_line.cli import main
from rearrange.command_line.composition.options import ExportOptions
from skills import pretrained
from tests.trainer.toys import Counter, Masked, Pointer
from trainer import CollectConfig, Player, PolicyConfig, PPOConfig, TrainConfig, load_checkpoint, load_policy, train
from trainer.export import METADATA, Step, export


class Steered(gym.Env):
    """Random observations, whatever the action; of any spaces."""

    def __init__(self, action_space, observation_space=spaces.Box(-1, 1, (3,))):
        self.action_space, self.observation_space = action_space, copy.deepcopy(observation_space)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), float(np.mean(action)), bool(self.np_random.random() < 0.1), False, {}


NAMED = spaces.Dict(pixels=spaces.Box(0, 255, (16, 16, 3), np.uint8), state=spaces.Box(-1, 1, (3,)),
                    previous=spaces.Box(-1, 1, (2,)),
                    recurrent_previous=spaces.Box(-1, 1, (1,)), action=spaces.Box(-1, 1, (2,)),
                    linear=spaces.Box(-1, 1, (2,)))
KINDS = {"lstm": (Counter, PolicyConfig(lstm_layers=1, hidden_size=8, body_size=16)),
         "gru and image": (lambda: Pointer(image=True),
                           PolicyConfig(memory="gru", lstm_layers=2, hidden_size=8, body_size=16)),
         "none, discrete": (lambda: gym.make("CartPole-v1"), PolicyConfig(lstm_layers=0, body_size=16)),
         "first option -1": (lambda: Steered(spaces.Discrete(3, start=-1)), PolicyConfig(body_size=16)),
         "options with starts": (lambda: Steered(spaces.MultiDiscrete([[3, 4]], start=[[1, -2]])),
                                 PolicyConfig(body_size=16)),
         "whole numbers": (lambda: Steered(spaces.Box(-3, 3, (2,), np.int32)), PolicyConfig(body_size=16)),
         "bytes": (lambda: Steered(spaces.Box(0, 255, (2,), np.uint8)), PolicyConfig(body_size=16, mean_init=7.3)),
         "the engine's names": (lambda: Steered(spaces.Box(-1, 1, (2,)), NAMED),
                                PolicyConfig(lstm_layers=1, hidden_size=8, body_size=16)),
         "masked": (Masked, PolicyConfig(body_size=16))}


@pytest.fixture(scope="module", params=KINDS)
def trained(request, tmp_path_factory):
    """A run, and what makes its environment."""
    folder = tmp_path_factory.mktemp("run")
    make_env, policy = KINDS[request.param]
    collect = CollectConfig(num_envs=2, num_workers=0, rollout_steps=16)
    train(make_env, TrainConfig(steps=128, policy=policy, ppo=PPOConfig(mini_batches=2, epochs=1), collect=collect,
                                torch_threads=1), folder,
          progress=False)
    return folder, make_env


def worst_difference(trained, act_of, keys) -> float:
    """Of `act_of`'s actions from Player's, over three episodes."""
    folder, env, worst = trained[0], trained[1](), 0.0
    player = Player(folder, env, deterministic=True)
    for episode in range(3):
        obs, _ = env.reset(seed=episode)
        player.reset()
        sizes = player.policy.state_size, player.policy.action_size
        state, previous = (np.zeros((1, size), np.float32) for size in sizes)
        for _ in range(10):
            values = obs if isinstance(obs, dict) else {"obs": obs}
            action, state, previous = act_of({k: np.asarray(values[k], np.float32)[None] for k in keys}, state,
                                             previous)
            expected = player.act(obs)
            worst = max(worst, float(np.abs(np.asarray(expected) - action.reshape(np.shape(expected))).max()))
            obs, _, over, cut, _ = env.step(expected)
            if over or cut:
                break
    return worst


ONNX = ("lstm", "gru and image", "options with starts", "bytes", "the engine's names")
TORCH = ("lstm", "none, discrete", "first option -1", "whole numbers", "masked")


@pytest.mark.parametrize("trained, format", [*((kind, "onnx") for kind in ONNX), *((kind, "torch") for kind in TORCH)],
                         indirect=["trained"])
def test_the_exported_policy_acts_as_player(trained, tmp_path, format):
    """In another runtime."""
    if format == "onnx":
        onnxruntime = pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    policy = load_policy(load_checkpoint(trained[0]))
    out = export(policy, tmp_path / "policy", format)
    names = Step(policy).names()
    if format == "onnx":
        session = onnxruntime.InferenceSession(str(out))
        check_description(session.get_modelmeta().custom_metadata_map, session.get_inputs(), session.get_outputs(),
                          policy)
        there = {each.name for each in session.get_inputs()}
        run = lambda *values: session.run(None, {k: v for k, v in zip(names, values) if k in there})  # noqa: E731
    else:
        about = {METADATA: ""}
        module = torch.export.load(out, extra_files=about).module()
        assert [each["name"] for each in json.loads(json.loads(about[METADATA])["inputs"])] == names
        run = lambda *values: [each.numpy() for each in module(*map(torch.from_numpy, values))]  # noqa: E731
    assert all(each.requires_grad for each in policy.parameters())
    worst = worst_difference(trained, lambda obs, state, previous: run(*obs.values(), state, previous), names[:-2])
    assert worst < 1e-5 and (policy.normalizer is None or policy.normalizer.count == 128)


def check_description(said, inputs, outputs, policy) -> None:
    """The file says of itself what its graph has, in JSON without infinities, and what is normalised inside."""
    strict = lambda name: json.loads(said[name], parse_constant=pytest.fail)  # noqa: E731
    for name, there in (("inputs", inputs), ("outputs", outputs)):
        assert [(each["name"], each["shape"]) for each in strict(name)] == [(each.name, each.shape) for each in there]
        types = {"float32": "tensor(float)", "int64": "tensor(int64)"}
        assert [types[each["dtype"]] for each in strict(name)] == [each.type for each in there]
    normalised = {each["name"] for each in strict("inputs") if "deviation" in each.get("normalised_inside", "")}
    assert normalised == set(policy.vector_keys if policy.normalizer else ())
    assert all("0.00392157" in each["normalised_inside"]
               for each in strict("inputs") if policy.units.get(each["name"], 1) != 1)


@pytest.mark.parametrize("task", pretrained.names())
def test_the_meaning_of_every_observation_is_known(task):
    content = load_checkpoint(pretrained.path(task))
    known = meanings(training_of(content))
    assert set(load_policy(content).seen) | {"action"} <= {name for name, text in known.items() if text}


def test_export_takes_the_policy_that_the_words_mean(tmp_path, capsys):
    """Of a skill the newest run or that of the package; a task that the checkpoint is not of is refused."""
    choice, _ = asked_for("export", ExportOptions(choices={"skill": "pick"}, output=str(tmp_path)))
    assert choice.checkpoint == pretrained.path("pick")
    for words, told in ((["skill=pick", f"checkpoint={pretrained.path('place')}"], "is a checkpoint of skill place"),
                        (["skill=pick", "nav=pointnav"], "skill=pick and nav=pointnav are both given"),
                        (["checkpoint=pretrained"], "which policy? For example: rearrange export skill=pick"),
                        (["skill=pick", "checkpoint=newst"], "Did you mean checkpoint=newest?")):
        assert main(["export", *words, f"out={tmp_path}/x.onnx", f"output={tmp_path}"]) == 2
        assert told in capsys.readouterr().err


@pytest.mark.parametrize("trained", ["the engine's names"], indirect=True)
def test_an_observation_keeps_a_name_that_the_engine_has_too(trained):
    step = Step(load_policy(load_checkpoint(trained[0])))
    assert step.names() == [*step.keys, "recurrent_state",
                            "recurrent_recurrent_previous"] and set(step.keys) == set(NAMED)
    assert step.outputs() == ["recurrent_action", "next_state", "next_previous"]


@pytest.mark.parametrize("trained", ["lstm"], indirect=True)
def test_the_command_writes_a_file_and_says_mistakes_in_a_sentence(trained, tmp_path, capsys):
    def command(*words):
        with pytest.MonkeyPatch.context() as here:
            here.chdir(tmp_path)
            return main(["export", *words])

    assert command(f"checkpoint={trained[0]}", "format=torch", "out=policy.pt2") == 0
    assert (tmp_path / "policy.pt2").stat().st_size > 1000 and "one step of the policy" in capsys.readouterr().out
    for words, told in ((["format=torch"], "which policy?"),
                        ([f"checkpoint={trained[0]}", "out=nowhere/x.onnx"], "its folder is not there"),
                        (["checkpoint=nothing"], "no checkpoint at nothing"),
                        (["checkpoint=x", "format=pdf"], "format=pdf is not allowed")):
        assert command(*words) == 2 and told in capsys.readouterr().err
    assert [path.name for path in Path(tmp_path).iterdir()] == ["policy.pt2"]


@pytest.mark.parametrize("trained", ["lstm"], indirect=True)
def test_an_export_that_cannot_be_written_leaves_what_was_there(trained, tmp_path, capsys, monkeypatch):
    def refused(out, *words) -> str:
        assert main(["export", f"checkpoint={trained[0]}", "format=torch", f"out={out}", *words]) == 2
        return capsys.readouterr().err

    checkpoint = tmp_path / "step_1.pt"
    checkpoint.write_bytes(b"mine")
    os.mkfifo(tmp_path / "pipe.pt2")
    assert "by its name it is no policy that was exported" in refused(checkpoint) and checkpoint.read_bytes() == b"mine"
    assert "it is a pipe or a device" in refused(tmp_path / "pipe.pt2")
    before = tmp_path / "policy.pt2"
    before.write_bytes(b"before")

    def full(path, content):
        path.touch()
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    for format_ in ("torch", "onnx"):
        if format_ == "onnx":
            pytest.importorskip("onnxscript")
        with monkeypatch.context() as patched:
            patched.setattr(Path, "write_bytes", full)
            assert f"out={before} cannot be written: No space left on device." in refused(before, f"format={format_}")
        assert before.read_bytes() == b"before"
        assert {path.name for path in tmp_path.iterdir()} == {"step_1.pt", "pipe.pt2", "policy.pt2"}
