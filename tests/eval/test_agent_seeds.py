"""Agents draw other random numbers than the environments that they act in, the same ones wherever an episode runs."""

from types import SimpleNamespace

import gymnasium
import numpy as np

from eval.agents import RandomAgent
from eval.evaluate import Job, run_chunk
from eval.recording.skill_episodes import SkillJob, record_skill
from eval.slots import agent_seed
from eval.view.sessions import SkillSession
from rearrange.env.skill_env import RearrangeEnv

SMALL = {"split": "val", "depth_size": 0, "num_layouts": 4, "max_steps": 2}


def test_evaluations_recordings_and_the_viewer_seed_agents_alike_and_apart_from_environments(monkeypatch):
    agents, environments = [], []
    begin, reset = RandomAgent.begin, RearrangeEnv.reset
    monkeypatch.setattr(RandomAgent, "begin", lambda self, slot, seed: agents.append(seed) or begin(self, slot, seed))
    monkeypatch.setattr(RearrangeEnv, "reset", lambda self, *, seed=None, options=None:
                        environments.append(seed) or reset(self, seed=seed, options=options))
    job = SkillJob("pick", SMALL, "random")
    ways = (lambda: list(run_chunk(Job("pick", SMALL, "random", None, 1), [0])),
            lambda: list(record_skill(job, range(1))),
            lambda: SkillSession(SimpleNamespace(job=job)).begin(0))
    for way in ways:
        agents.clear(), environments.clear()
        way()
        assert agents == [agent_seed(environments[-1])] and agents[0] not in environments


def test_first_draws_of_agent_and_environment_are_not_correlated():
    seeds = range(500)
    environment = [gymnasium.utils.seeding.np_random(seed)[0].normal() for seed in seeds]
    agent = [np.random.default_rng(agent_seed(seed)).normal() for seed in seeds]
    assert abs(np.corrcoef(environment, agent)[0, 1]) < 0.2
