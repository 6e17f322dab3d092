"""What a step of a plan tells its skill: which object, which goal, which handle, where to drive.

As in TP-SRL, skills get the coordinates at which objects stood when the episode began, and the goals. Navigating to a
drawer or fridge means navigating to the object in it, which stood there or was placed there, or to its handle where
Navigate learned that (`to_handle`). To plan again is to look again: from then on the coordinates are those of that
moment (`StepArguments.look_again`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from planner.belief import Belief
from planner.predicates import Symbols, in_
from planner.rules import Rules, Step
from rearrange.home.apartments.containers import inside, inside_at
from rearrange.home.apartments.episodes import NoStartPose
from rearrange.home.episodes.scene_check import receptacle_under
from rearrange.home.errors import UserError
from rearrange.home.simulation.simulator_interface import Simulator
from skills.arguments import SkillArguments
from skills.navigate import Navigate
from skills.skill import Skill, can_start

_GAPS_M, _DIRECTIONS = (0.6, 0.7, 0.8, 0.9, 1.0, 1.2), 16  # from a thing before which no skill would start


class StepArguments:
    """Hands out arguments in one episode, which has just been loaded into `sim`.

    shadow: a second simulator, in which start poses of skills are searched. belief: source of object positions and
    openings instead of the simulator's state.
    """

    def __init__(self, sim: Simulator, shadow: Simulator, symbols: Symbols, rules: Rules,
                 rng: np.random.Generator, belief: Belief | None = None) -> None:
        self.sim, self.shadow, self.symbols, self.rules, self._rng = sim, shadow, symbols, rules, rng
        self._belief, self._world = belief, belief or sim
        self.episode = sim.episode
        self._starts: list[Sequence[float]] = list(sim.start_positions)
        self._openings = dict(sim.episode.articulated)  # of drawers and doors when the objects stood there

    def look_again(self) -> None:
        """From now on objects have the coordinates at which they are now."""
        if self._belief is not None:
            return  # which is always up to date
        sim = self.sim
        self._starts = [sim.object_position(index) for index in range(len(self._starts))]
        self._openings = {joint: sim.joint_position(joint) for joint in sim.home.handles}

    def give(self, skill: Skill, step: Step) -> bool:
        """Start `skill` on the thing of `step`. True for navigate when it is known where the next skill would start."""
        sim, args = self.sim, step.operator.args
        sim.want()
        if isinstance(skill, Navigate):
            return self._give_navigate(skill, step)
        joint = next((self.symbols.joints[arg] for arg in args[:1] if arg in self.symbols.joints), None)
        if joint is None:
            target = next((self.symbols.objects[arg] for arg in args if arg in self.symbols.objects), None)
            if target is None:
                raise UserError(f"the action {step.operator.name!r} of the planning domain tells its skill nothing to "
                                "act on: its parameters have to begin with a movable, a cabinet or a fridge.")
            skill.begin(sim, self._about(target, next((arg for arg in args if arg in self.symbols.goals), None)))
        else:
            skill.begin(sim, SkillArguments(self._inside(args[0]), joint))
        return False

    def _about(self, target: int, goal: str | None) -> SkillArguments:
        """Arguments about an object; its goal is that of the episode unless another is named."""
        pose = self.episode.targets[target] if goal is None else self.symbols.goals[goal]
        return SkillArguments(target, position=self.start_of(target), goal=pose)

    def _give_navigate(self, skill: Navigate, step: Step) -> bool:
        symbols, thing = self.symbols, step.operator.args[0]
        some = next(iter(symbols.objects.values()))
        goal = elsewhere = None
        if thing in symbols.goals:
            placed = symbols.objects.get(step.next.args[0]) if step.next else None
            target = next(index for index in (placed, self._world.held, some) if index is not None)
            goal, point = thing, symbols.goals[thing][:3]
        elif thing in symbols.objects:
            target = symbols.objects[thing]
            point = self.start_of(target)
        else:
            content = self._inside(thing)
            point = self._point_at(thing, content)
            target = some if content is None else content
            elsewhere = point if content is None else None  # what is elsewhere need not be faced
        arguments = replace(self._about(target, goal), next_skill=step.next_kind or "pick", point=elsewhere)
        found, known = self._find_goal_pose(skill, arguments, thing)
        handle, handle_position = skill.arguments.handle, skill.arguments.handle_position  # which were added
        if handle is not None and self._belief is not None:
            handle_position = self._belief.handle_position(handle)
        told = replace(arguments, handle=handle, handle_position=handle_position, point=point,
                       next_skill=arguments.next_skill if self.rules.tell_next_skill else None)
        if found:
            skill.begin(self.sim, told)
        else:
            skill.arguments = told  # it has no pose to be judged by
        return known

    def start_of(self, target: int) -> tuple[float, float, float]:
        """The coordinates that skills are given for an object: those of the belief if there is one.

        Else where it stood when the episode began, or at the last `look_again`; with `follow_drawer` it moves with its
        drawer.
        """
        if self._belief is not None:
            return tuple(self._belief.object_position(target))
        if not self.rules.follow_drawer:
            return tuple(self._starts[target])
        return moved_with_drawer(self.sim, self._openings, self._starts[target])

    def _point_at(self, container: str, content: int | None) -> tuple[float, ...]:
        """Coordinates of a container for Navigate: those of the object that is or belongs in it, else its handle."""
        world, joint = self._world, self.symbols.joints[container]
        if content is not None:
            stood, opening = self._starts[content], self._openings.get(joint, 0.0)
            if self._belief is not None:
                stood, opening = world.object_position(content), world.joint_position(joint)
            if inside_at(world.home.layout, stood, joint, opening):
                return self.start_of(content)
            goal = self.episode.targets[content][:3]
            if inside(world, goal, joint) or inside(world, goal, joint, opened=True):
                return goal
        return tuple(world.handle_position(joint))

    def _inside(self, container: str) -> int | None:
        """The first of the objects that is in a drawer or fridge."""
        return next((index for name, index in self.symbols.objects.items()
                     if in_(self._world, self.symbols, name, container)), None)

    def _find_goal_pose(self, skill: Navigate, arguments: SkillArguments, thing: str) -> tuple[bool, bool]:
        """Give Navigate a goal pose. Whether it has one, and whether the next skill would start there."""
        sim, shadow, target = self.sim, self.shadow, arguments.target
        shadow.reset(sim.episode)
        shadow.copy_state(sim)
        place = sim.start_positions[target] if sim.held == target else tuple(sim.object_position(target))
        if thing in self.symbols.joints:
            joint = self.symbols.joints[thing]
            receptacle = next(r for r in sim.home.layout.receptacles if r.link == joint)
        else:
            receptacle = receptacle_under(sim, self.symbols.position(sim, thing))
        try:
            skill.set_goal(shadow, replace(arguments, position=place), receptacle, self._rng)
        except NoStartPose:
            return self._go_near(skill, self.symbols.position(sim, thing)), False
        return True, True

    def _go_near(self, skill: Navigate, point: Sequence[float]) -> bool:
        """Let Navigate drive to the nearest place from which the robot faces a point; False when there is none."""
        shadow, held = self.shadow, skill.arguments.placed
        for gap in _GAPS_M:
            for k in range(_DIRECTIONS):
                yaw = 2 * math.pi * k / _DIRECTIONS
                x, y = point[0] - gap * math.cos(yaw), point[1] - gap * math.sin(yaw)
                if not can_start(shadow, x, y, yaw, (point[0], point[1]), held):
                    continue
                try:
                    skill.drive_to(shadow, (x, y, yaw))
                except NoStartPose:
                    continue
                return True
        return False


def moved_with_drawer(sim: Simulator, openings: Mapping[str, float], point: Sequence[float]) -> tuple[float, ...]:
    """Where a point is now that was in a drawer when drawers and doors stood at these openings (m, rad)."""
    for body in sim.home.layout.bodies:
        then = openings.get(body.name, 0.0)
        if body.joint == "slide" and inside_at(sim.home.layout, point, body.name, then):
            (x0, y0, _), (x1, y1, _) = body.pose(then), body.pose(sim.joint_position(body.name))
            return point[0] + x1 - x0, point[1] + y1 - y0, point[2]
    return tuple(point)
