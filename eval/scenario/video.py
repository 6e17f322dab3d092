"""Videos of scenarios: the home from outside with marks, the depth image, the plan with its current step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eval.processes import share_out
from eval.scenario.evaluate import EpisodeResult, Job, run_again
from eval.video import HAND_SIZE, SCENE_SIZE, VideoWriter, composed, in_words, known_floor, pace
from rearrange.home.simulation.simulator_interface import STEP_S
from skills.picture_marks import goal_ball, handle_ball, object_box, object_ghost, spoken_name

if TYPE_CHECKING:
    from planner.execute import Executor
    from planner.rules import Step
    from rearrange.home.simulation.simulator_interface import Simulator

PLAN_LINES = 4  # of the plan, around the current step
DEPTH_SIZE = 128  # of the picture for people, where the skill sees none


def shown(results: Sequence[EpisodeResult], count: int) -> list[EpisodeResult]:
    """The `count` episodes to show: the first success, the first failure, the longest, then the first ones."""
    success = next((result for result in results if result.success), None)
    failure = next((result for result in results if not result.success), None)
    longest = max(results, key=lambda result: (result.steps, -result.index), default=None)
    chosen: dict[int, EpisodeResult] = {}
    for result in (success, failure, longest, *results):
        if result is not None and len(chosen) < count:
            chosen.setdefault(result.index, result)
    return list(chosen.values())


def frames_of(job: Job, results: Sequence[EpisodeResult]) -> int:
    """How many frames the videos of these episodes have together."""
    return sum(-(-result.steps // pace(job.video_speed)[0]) + 1 for result in results)


def record(job: Job, results: Sequence[EpisodeResult], workers: int | None,
           progress: Callable[[int], None] = lambda frames: None) -> dict[int, str]:
    """Run some episodes again and record them; index -> path of the video. progress: told how many frames are made."""
    paths, frames = {}, dict.fromkeys((result.index for result in results), 0)

    def take(made: tuple[int, int, Path | None]) -> None:
        index, frames[index], path = made
        if path is not None:
            paths[index] = str(path)
        progress(sum(frames.values()))

    if results:
        share_out(record_one, job, list(results), workers, take)
    return paths


def record_one(job: Job, result: EpisodeResult) -> Iterator[tuple[int, int, Path | None]]:
    """Run an episode again and film it: `episode_<index>_<success|failure>.mp4`.

    Yields the index, how many frames are made, and at the end the file. Raises RuntimeError if the episode does not go
    as it went before.
    """
    name = f"episode_{result.index:04d}_{'success' if result.success else 'failure'}.mp4"
    with VideoWriter(Path(job.video_dir) / name, pace(job.video_speed)[1]) as video:
        film, steps, told = Film(video, job), run_again(job, result.index, result.slot), 0
        while True:
            try:
                film.watch(next(steps))
            except StopIteration as end:
                again = end.value
                break
            if video.frames > told:
                told = video.frames
                yield result.index, told, None
        if (again.success, again.steps, again.metrics) != (result.success, result.steps, result.metrics):
            raise RuntimeError(f"episode {result.index} went another way when it was run again: {result.steps} steps "
                               f"before, {again.steps} now.")
        film.last(again.success, "" if again.success else f"{again.ended_in}: {again.reason}")
    yield result.index, video.frames, video.path


class Film:
    """One frame every so many steps as `video_speed` asks for, and one at the end with the outcome."""

    def __init__(self, video: VideoWriter, job: Job) -> None:
        self._video, self._job, self._every = video, job, pace(job.video_speed)[0]

    def watch(self, run: Executor) -> None:
        self._run = run
        run.env.scene.picture_size = SCENE_SIZE
        if run.env.steps % self._every == 0 and not run.done:
            self._add()
        elif not run.done:
            run.env.scene.follow()

    def last(self, success: bool, why: str) -> None:
        """The end. why: of a failure."""
        self._add(success, why.replace("_", " "))

    def _add(self, outcome: bool | None = None, why: str = "") -> None:
        run, env, scene = self._run, self._run.env, self._run.env.scene
        at_goal = sum(env.at_goal(k) for k in range(len(env.episode.targets)))
        lines = [f"{env.steps * STEP_S:.0f} s   step {env.steps}{in_words(self._job.video_speed)}",
                 what_is_held(run.sim), f"at their goals: {at_goal} of {len(env.episode.targets)}", *plan_lines(run)]
        depth = scene.image if scene.image is not None else scene.take_image(DEPTH_SIZE)
        known = known_floor(scene, run.skills[run.step.skill]) if run.step is not None and scene.maps_floor else None
        title = f"{self._job.scenario.name}: {phase(run)}".replace("_", " ")
        self._video.draw(partial(composed, scene.frame(marks(run), HAND_SIZE), depth, lines, title=title,
                                 outcome=outcome, reason=why, floor=known,
                                 footer=f"{env.episode.scene}   {env.episode.id}"))


def what_is_held(sim: Simulator) -> str:
    """What the hand holds, in words: `holds the bowl`, `holds the handle of fridge door`, `holds nothing`."""
    if sim.held is not None:
        return f"holds the {spoken_name(sim, sim.held)}".replace("_", " ")
    if sim.held_handle is not None:
        return f"holds the handle of {sim.held_handle}".replace("_", " ")
    return "holds nothing"


def phase(run: Executor) -> str:
    """What is being done, in a word or two."""
    if run.step is not None:
        return run.step.skill
    if not run.steps:
        return "whole task"
    return "wait" if run.at >= len(run.steps) else "reset arm"


def plan_lines(run: Executor) -> list[str]:
    """Some lines of the plan; `>` marks the current step."""
    first = max(0, min(run.at - 1, len(run.steps) - PLAN_LINES))
    return [f"{'>' if i == run.at else '  '} {i + 1}  {short(run, run.steps[i])}"
            for i in range(first, min(first + PLAN_LINES, len(run.steps)))]


def short(run: Executor, step: Step) -> str:
    """A step in a few words: `pick bowl`."""
    args = step.operator.args
    if step.skill == "navigate" and args[0] in run.symbols.goals:
        return f"navigate to goal {args[0].rpartition('_')[2]}"
    thing = spoken_name(run.sim, run.symbols.objects[args[0]]) if args[0] in run.symbols.objects else args[0]
    words = {"navigate": "navigate to ", "pick": "pick ", "place": "place "}.get(step.skill)
    return (words + thing if words else f"{step.skill}").replace("_", " ")


def about(run: Executor) -> str | None:
    """The object that the current step, or the next one that is about an object, is about."""
    for step in run.steps[run.at:]:
        for operator in (step.operator, step.next):
            found = next((arg for arg in (operator.args if operator else ()) if arg in run.symbols.objects), None)
            if found:
                return found
    return None


def marks(run: Executor) -> list[Any]:
    """A wire box on the object, a ghost of it at its goal, a ball where to drive or at the handle."""
    shown: list[Any] = []
    if not run.steps:  # no plan: everything that is to be moved
        for index, goal in run.episode.targets.items():
            shown += [object_box(run.sim, index), object_ghost(run.episode.objects[index], goal)]
        return shown
    if (name := about(run)) is not None:
        index = run.symbols.objects[name]
        shown += [object_box(run.sim, index), object_ghost(run.episode.objects[index], run.episode.targets[index])]
    step = run.step
    if step is None:
        return shown
    if step.skill == "navigate":
        skill, thing = run.skills["navigate"], step.operator.args[0]
        point = skill.goal_pose if run.has_goal_pose else run.symbols.position(run.sim, thing)
        shown.append(goal_ball((point[0], point[1])))
    elif step.operator.args[0] in run.symbols.joints:
        shown.append(handle_ball(run.sim, run.symbols.joints[step.operator.args[0]]))
    return shown
