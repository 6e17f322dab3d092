"""Evaluation while training: apart from it, the best policy kept and taken, an end when it is good enough."""

from __future__ import annotations

import functools
import io
from dataclasses import replace
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv

from tests.trainer.toys import BLIND, Pointer, small
from trainer import Player, load_checkpoint, train
from trainer.checkpoint import best, list_checkpoints, newest, write
from trainer.checkpoints.saving import Evaluations
from trainer.errors import WorkerError
from trainer.evaluation import measure
from trainer.film import MOST_FRAMES, Film
from trainer.workers import evaluation_process
from trainer.workers.evaluation_process import evaluate


class Told(Pointer):
    """Whose episodes tell a success that depends on the place where it is made."""

    def __init__(self, success: float):
        super().__init__()
        self.success = success

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward, terminated, truncated, {"metrics": {"success": self.success}} if truncated else info


def config(steps: int, **settings):
    return small(steps, num_envs=4, rollout_steps=32, log_every_s=1e-9, **settings)


def test_the_best_is_kept_beside_the_newest_and_taken_by_whoever_plays(tmp_path):
    """In environments of its own, whose success is another than that of training."""
    settings = config(512, eval_every=128, eval_episodes=3, checkpoint_every_s=1e-9)
    result = train(functools.partial(Told, 0.0), settings, tmp_path, eval_env=functools.partial(Told, 0.75),
                   progress=False)
    folder = tmp_path / "checkpoints"
    assert result.best[0] == 0.75 and not result.reached and result.reason == "complete"
    assert best(tmp_path) == folder / "best.pt"
    assert newest(tmp_path) == list_checkpoints(folder)[-1] == result.checkpoint
    content = load_checkpoint(tmp_path)
    assert content["evaluation"] == {"measure": "success", "value": 0.75} and content["step"] == result.best[1]
    player = Player(tmp_path, Pointer())
    assert all(torch.equal(v, content["policy"][k]) for k, v in player.policy.state_dict().items())
    resumed = train(functools.partial(Told, 0.0), config(768, eval_every=128, eval_episodes=1), tmp_path,
                    resume_from=tmp_path,
                    eval_env=functools.partial(Told, 0.5), progress=False)
    assert resumed.steps == 768 and resumed.best == result.best, "what is not better takes no place"


def test_a_run_ends_when_it_is_good_enough(tmp_path):
    result = train(Pointer, config(10**7, eval_every=64, eval_episodes=2, stop_at=0.9), tmp_path,
                   eval_env=functools.partial(Told, 1.0),
                   progress=False)
    assert result.reached and result.reason == "success 1 in an evaluation" and result.steps < 10**7
    rows = [row for row in result.history if "eval/success" in row]
    assert (tmp_path / "checkpoints/best.pt").exists()
    assert all(row["eval/success"] == 1.0 and row["eval/at_step"] > 0 for row in rows)


class Drawn(Told):
    """Which draws a picture of how far it has come, 300 pixels wide."""

    render_mode = "rgb_array"

    def reset(self, **given):
        self.steps = 0
        return super().reset(**given)

    def step(self, action):
        self.steps += 1
        return super().step(action)

    def render(self):
        return np.full((100, 300, 3), 10 * self.steps, np.uint8)


def test_a_film_of_an_evaluation_goes_to_tensorboard_and_to_callbacks(tmp_path):
    from PIL import Image
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    films = []

    class Looks:
        def at_log(self, state):
            films.extend((state.step, film) for film in state.films.values())

    settings = config(256, eval_every=128, eval_episodes=2)
    result = train(Pointer, settings, tmp_path, eval_env=functools.partial(Drawn, 1.0), progress=False,
                   callbacks=[Looks()])
    events = EventAccumulator(str(tmp_path / "tb"), size_guidance={"images": 0})
    events.Reload()
    images = events.Images("eval/episode")
    assert len(films) and [(image.step, image.encoded_image_string) for image in images] == films
    film = Image.open(io.BytesIO(films[0][1]))
    assert film.size == (256, 85) == (images[0].width, images[0].height) and film.n_frames == Pointer().length + 1
    grey = [film.seek(k) or int(np.asarray(film.convert("RGB"))[40, 40, 0]) for k in range(film.n_frames)]
    assert grey == sorted(grey)
    assert grey[-1] - grey[0] >= 10 * (film.n_frames - 2), "one episode from its beginning to its end"
    assert result.history[-1]["eval/at_step"] == result.steps, "the last evaluation is told, too"


def test_a_film_of_a_long_episode_has_few_frames_at_even_distances():
    from PIL import Image

    film, taken = Film(), []
    for step in range(1000):
        if film.is_due:
            taken.append(step)
            film.add(np.full((8, 8, 3), step // 4, np.uint8))
    frames = Image.open(io.BytesIO(film.gif()))
    grey = [frames.seek(k) or int(np.asarray(frames.convert("RGB"))[0, 0, 0]) for k in range(frames.n_frames)]
    assert MOST_FRAMES / 2 <= frames.n_frames < MOST_FRAMES and len(taken) < 4 * MOST_FRAMES
    assert max(np.diff(grey)) <= 1000 // 4 / (MOST_FRAMES / 2) + 1 and grey[-1] > 240
    assert Film().gif() is None


class Breaks(Pointer):
    def step(self, action):
        raise ZeroDivisionError("the drawer fell out")


def test_an_evaluation_that_fails_is_a_warning_and_training_goes_on(caplog):
    result = train(Pointer, config(512, eval_every=64), eval_env=Breaks)
    assert result.steps == 512 and result.best is None and "the drawer fell out" in caplog.text


class Endless(Pointer):
    def step(self, action):
        observation, reward, _, _, info = super().step(action)
        return observation, reward, False, False, info


def test_an_episode_without_an_end_is_a_sentence_not_a_wait(monkeypatch):
    monkeypatch.setattr(evaluation_process, "MOST_STEPS", 50)
    player = SimpleNamespace(reset=lambda: None, act=lambda _: np.zeros(2, np.float32))
    with pytest.raises(RuntimeError, match="has not ended after 50 steps: give .* with a time limit"):
        evaluation_process.evaluate(player, Endless(), 1, seed=0)


def several():
    return SyncVectorEnv([lambda: gym.make("CartPole-v1")] * 4)


def fails():
    raise ZeroDivisionError("no drawer to be found")


@pytest.mark.parametrize("make_env, eval_env, error, words", [
    (several, None, ValueError,
     r"SyncVectorEnv.*several in one: give train\(eval_env=\) a function that makes one single environment"),
    (Pointer, lambda: gym.make("CartPole-v1"), ValueError,
     "it needs observation 'goal' .* which that of evaluations gives not at"),
    (Pointer, 3, ValueError, "cannot call 3 to make an environment: give"),
    (Pointer, lambda: 3, ValueError, "were given 3, which is no Gymnasium environment: give"),
    (Pointer, fails, WorkerError, "no drawer to be found")])
def test_an_environment_that_cannot_be_evaluated_in_is_refused_before_training(make_env, eval_env, error, words):
    settings = config(512, eval_every=64)
    settings = replace(settings, collect=replace(settings.collect, num_workers=0 if make_env is several else 1))
    with pytest.raises(error, match=words):
        train(make_env, settings, eval_env=eval_env)


def test_a_vector_is_evaluated_in_a_single_environment():
    settings = config(256, eval_every=64, eval_episodes=1)
    settings = replace(settings, collect=replace(settings.collect, num_workers=0))
    assert train(several, settings, eval_env=lambda: gym.make("CartPole-v1")).best is not None


def test_evaluations_do_not_change_what_is_learned():
    policies = [train(Pointer, config(512, eval_every=every, deterministic=True)).policy for every in (None, 64)]
    assert all(torch.equal(a, b) for a, b in zip(*(p.parameters() for p in policies)))


def test_means_are_over_seeded_episodes_and_the_measure_is_success_where_it_is_told():
    class Half:
        """Always the same action."""

        def reset(self):
            pass

        def act(self, observation):
            return np.full(2, 0.5, np.float32)

    told = evaluate(Half(), Told(0.25), 4, seed=3)
    assert told == evaluate(Half(), Told(0.25), 4, seed=3) and told["length"] == 10.0
    assert measure(told) == ("success", 0.25) and measure({"return": 2.0}) == ("return", 2.0)


def test_the_last_checkpoint_is_there_before_the_last_evaluation_is_waited_for(tmp_path, monkeypatch):
    finish, found, folder = Evaluations.finish, [], tmp_path / "checkpoints"
    monkeypatch.setattr(Evaluations, "finish", lambda self: (found.append(list_checkpoints(folder)[-1:]), finish(self)))
    result = train(Pointer, config(256, eval_every=128, eval_episodes=2), tmp_path, progress=False)
    assert found == [[result.checkpoint]] and load_checkpoint(result.checkpoint)["step"] == 256
    assert result.reason == "complete" and result.history[-1]["eval/at_step"] == 256
    assert best(tmp_path).name == "best.pt"


class Late(Pointer):
    """Every return is 10; the end of its k-th episode tells the success `tells(k)`, or nothing."""

    def __init__(self, tells):
        super().__init__()
        self.tells, self.ended = tells, 0

    def step(self, action):
        observation, _, terminated, truncated, _ = super().step(action)
        self.ended += truncated
        success = self.tells(self.ended) if truncated else None
        return observation, 1.0, terminated, truncated, {} if success is None else {"metrics": {"success": success}}


@pytest.mark.parametrize("tells", [lambda k: 0.25 if k > 2 else None, lambda k: 0.25 if k <= 2 else None],
                         ids=["later", "at first"])
def test_a_return_is_not_compared_with_a_success(tells, tmp_path):
    """Evaluations of two episodes, some of which tell no success; also in the run that goes on."""
    settings = config(512, eval_every=64, eval_episodes=2)
    result = train(Pointer, settings, tmp_path, eval_env=lambda: Late(tells), progress=False)
    assert result.best[0] == 0.25 and load_checkpoint(tmp_path)["evaluation"] == {"measure": "success", "value": 0.25}
    resumed = train(Pointer, replace(settings, steps=768), tmp_path, resume_from=tmp_path,
                    eval_env=lambda: Late(lambda k: None), progress=False)
    assert resumed.best == result.best and load_checkpoint(tmp_path)["step"] == result.best[1]


def test_returns_are_compared_while_no_success_is_told_and_replaced_by_the_first_one_in_a_run_that_goes_on(tmp_path):
    settings = config(256, eval_every=64, eval_episodes=2)
    assert train(Pointer, settings, tmp_path, eval_env=lambda: Late(lambda k: None), progress=False).best[0] == 10.0
    assert load_checkpoint(tmp_path)["evaluation"] == {"measure": "return", "value": 10.0}
    resumed = train(Pointer, replace(settings, steps=512), tmp_path, resume_from=tmp_path,
                    eval_env=lambda: Late(lambda k: 0.25), progress=False)
    assert resumed.best[0] == 0.25 and load_checkpoint(tmp_path)["evaluation"] == {"measure": "success", "value": 0.25}


def test_a_success_that_is_no_number_is_none(tmp_path):
    settings = config(512, eval_every=64, eval_episodes=2)
    result = train(Pointer, settings, tmp_path, eval_env=lambda: Late(lambda k: np.nan if k <= 2 else 0.5),
                   progress=False)
    assert result.best[0] == 0.5 and all(np.isfinite(row.get("eval/success", 0.0)) for row in result.history)
    file = tmp_path / "checkpoints/best.pt"
    # as an older version may have kept
    write(file, load_checkpoint(file) | {"evaluation": {"measure": "success", "value": np.nan}})
    resumed = train(Pointer, replace(settings, steps=768), tmp_path, resume_from=tmp_path,
                    eval_env=lambda: Late(lambda k: 0.25), progress=False)
    assert resumed.best[0] == 0.25 and load_checkpoint(file)["evaluation"]["value"] == 0.25


@pytest.mark.parametrize("reward", [np.nan, np.inf])
def test_a_reward_of_an_evaluation_that_is_no_number_is_a_warning(reward, caplog):
    class Wrong(Pointer):
        def step(self, action):
            observation, _, *others = super().step(action)
            return observation, reward, *others

    result = train(Pointer, config(512, eval_every=64), eval_env=Wrong)
    assert result.steps == 512 and result.best is None
    assert f"the reward of step 1 of an episode is {reward}" in caplog.text


def test_stop_at_needs_evaluations():
    with pytest.raises(ValueError, match="stop_at=0.5 needs evaluations"):
        train(Pointer, config(64, stop_at=0.5))


def test_a_policy_with_a_critic_of_its_own_is_evaluated_where_nothing_is_secret(tmp_path):
    class Secret(Pointer):
        def __init__(self):
            super().__init__()
            self.observation_space = spaces.Dict(self.observation_space.spaces
                                                 | {"secret": spaces.Box(0, 1, (1,), np.float32)})

        def _obs(self):
            return super()._obs() | {"secret": np.array([0.5], np.float32)}

    settings = config(256, eval_every=64, eval_episodes=1)
    settings = replace(settings, policy=replace(BLIND, critic_keys=("secret",)))
    result = train(Secret, settings, tmp_path, eval_env=Pointer, progress=False)
    assert result.best is not None and Player(tmp_path, Pointer()).act({"goal": np.zeros(2, np.float32)}).shape == (2,)
