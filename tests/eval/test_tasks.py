"""What a training evaluates its policy in while it goes on."""

import dataclasses

import pytest

from eval.task_from_settings import held_out, training_task
from rearrange.command_line.composition.options import options_of
from rearrange.command_line.composition.parse_overrides import compose


@pytest.mark.parametrize("split", ["val", "unseen"])
def test_a_training_is_evaluated_in_homes_that_it_does_not_see(split):
    """The homes of eval_split, drawn as the skill draws them: not those of training's file, and without its expert's
    advice."""
    words = ["skill=pick", "policy=blind", "sim.num_layouts=2", f"eval_split={split}"]
    options = options_of(compose("train", words))
    task = training_task(options)
    task = dataclasses.replace(task, advised=True, env=task.env | {"episodes": "listed.json", "episodes_share": 0.5})
    env = held_out(task, options.eval_split, films=True).make()
    _, info = env.reset(seed=0)
    assert info["scene"].startswith(f"{split}/") and "expert_action" not in env.observation_space.spaces
    assert env.render().shape == (512, 512, 3), "for the film of an evaluation"
    assert env.unwrapped.scene.depth_size == task.image_size == 0
