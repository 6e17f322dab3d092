"""The tools of an agent in one episode: which step a call means, why it is refused, and what became of it, in words.

What is said is what the robot knows by the rules of its `planner=`; `done` alone tells how things are.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from eval.tools.manual import TOOLS, TYPES
from eval.tools.words import Words, spoken_time
from planner.belief import Belief
from planner.pddl import Atom, Operator
from planner.predicates import apart_m
from planner.rules import skill_of
from planner.single_steps import SingleSteps
from rearrange.home.pictures.looks import PLAIN
from skills.picture_marks import spoken_name
from trainer.logs.printable import printable

PICTURE_SIZE = 256  # pixels
_SAID = 40  # characters of what a call gave


class Refused(Exception):
    """A call that cannot be carried out and has changed nothing, in a sentence."""


@dataclass(frozen=True)
class Answer:
    """What a call brought. picture: uint8 (size, size, 3). refused: nothing has changed."""

    text: str
    picture: np.ndarray | None = None
    refused: bool = False


class Toolbox:
    """Carries out calls in the running episode of an executor. step: makes one step of it."""

    def __init__(self, run: SingleSteps, step: Callable[[], None]) -> None:
        self._run, self._step, self._words = run, step, Words(run)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> Answer:
        """Carry a call out, however wrong it is."""
        try:
            given = checked(name, arguments or {})
            if self._run.done:
                raise Refused("The episode is over, and no tool can be called any more.")
            tools = {"list": self._list, "look": self._look, "go": self._go, "pick": self._pick, "place": self._place,
                     "open": self._open, "close": self._close, "done": self._done}
            return tools[name](**given)
        except Refused as error:
            return Answer(str(error), refused=True)

    # ------------------------------------------------------------------ tools

    def _list(self) -> Answer:
        run, words = self._run, self._words
        facts = [f"{' '.join(atom)}: {'holds' if run.is_true(atom) else 'does not hold'}" for atom in run.goal]
        return Answer("\n".join([
            f"Task: {run.env.instruction}.", "Objects:", *map(words.line, run.symbols.objects),
            "Places:", *map(words.line, (*run.symbols.goals, *run.symbols.joints)),
            "Facts of the goal, as far as is known:", *facts, f"Now {words.hand()}. {words.time_left()}"]))

    def _look(self, picture: bool = False) -> Answer:
        run, sim, words = self._run, self._run.sim, self._words
        # Where the robot knows the state it needs no belief: this one is of the moment.
        belief = run.belief or Belief.begin(sim, run.rules.detector_pixels, 0.0, np.random.default_rng(0))
        objects, handles = belief.look()
        names = {index: name for name, index in run.symbols.objects.items()}
        found = [f"{words.of(names[index]) if index in names else f'a {spoken_name(sim, index)}'} "
                 f"{words.direction(belief.object_position(index))}" for index in objects]
        found += [f"{words.of(name)} {words.opening(name)}, its handle {words.direction(belief.handle_position(joint))}"
                  for name, joint in run.symbols.joints.items() if joint in handles]
        image = sim.photograph("head", PICTURE_SIZE, ("rgb",), PLAIN)["rgb"] if picture else None
        return Answer(f"The camera shows {'; '.join(found) or 'nothing that the detector knows'}. Now {words.hand()}.",
                      image)

    def _go(self, to: str) -> Answer:
        self._require(to, self._run.symbols.types, "object or place")
        return self._carried_out(self._possible(self._operator("navigate", to)))

    def _pick(self, object: str) -> Answer:
        self._require(object, self._run.symbols.objects, "object")
        return self._carried_out(self._possible(self._operator("pick", object)))

    def _place(self, goal: str) -> Answer:
        self._require(goal, self._run.symbols.goals, "goal")
        held = self._words.held()
        if held is None:
            raise Refused("The hand holds no object that could be placed: pick one first.")
        return self._carried_out(self._possible(self._operator("place", held, goal)))

    def _open(self, container: str) -> Answer:
        return self._moved("open", container)

    def _close(self, container: str) -> Answer:
        return self._moved("close", container)

    def _moved(self, verb: str, container: str) -> Answer:
        self._require(container, self._run.symbols.joints, "drawer or fridge")
        operator = self._operator(verb, container)
        if self._run.is_true(("opened" if verb == "open" else "closed", container)):
            raise Refused(f"{self._words.of(container)} is {self._words.opening(container)} already.")
        return self._carried_out(self._possible(operator))

    def _done(self) -> Answer:
        run = self._run
        run.begin_stop()
        self._finish()
        metrics, goal = run.report.metrics, set(run.goal)
        if metrics["success"]:
            return Answer(f"Success: the goal holds ({len(goal)} facts), after {spoken_time(run.env.steps)}.")
        count = f"{round(metrics['goal_share'] * len(goal))} of {len(goal)} facts of the goal hold"
        missing = [" ".join(atom) for atom in sorted(goal) if not run.is_true(atom, run.sim)]
        if run.report.end == "time_limit":
            return Answer(f"No success: {self._ran_out()}; {count}.")
        return Answer(f"No success: {count}; missing: {', '.join(missing) or 'an empty hand'}.")

    # ------------------------------------------------------------------ which step, and whether it is possible

    def _require(self, name: str, names: Mapping[str, Any], what: str) -> None:
        if name not in names:
            near = difflib.get_close_matches(name, names, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            there = ", ".join(map(self._words.of, names)) or "none in this episode"
            raise Refused(f"There is no {what} {printable(repr(name), _SAID)}{hint}: names are {there}.")

    def _lacking(self, operator: Operator) -> list[Atom]:
        """Which preconditions do not hold, as far as is known."""
        return sorted(atom for atom in operator.preconditions if not self._run.is_true(atom))

    def _operator(self, verb: str, thing: str, goal: str | None = None) -> Operator:
        """The step that a verb means at a thing: of `pick` and `pick_from_cabinet` the one for where the thing is."""
        def misfit(operator: Operator) -> tuple[bool, int]:
            lacking = self._lacking(operator)
            return any(atom[0] in ("in", "in_the_open") for atom in lacking), len(lacking)

        return min((each for each in self._run.operators if each.name.split("_")[0] == verb and each.args[0] == thing
                    and goal in (None, *each.args)), key=misfit)

    def _possible(self, operator: Operator) -> Operator:
        """The step, where all that it needs holds."""
        lacking, words = self._lacking(operator), self._words
        said = {atom[0]: atom[1:] for atom in lacking}
        if "hand_empty" in said:
            raise Refused(f"This needs an empty hand, and {words.hand()}: place that first.")
        if "opened" in said:
            container = said["opened"][0]
            thing = operator.args[1] if operator.name.startswith("place") else operator.args[0]
            raise Refused(f"{words.of(thing)} is in {words.of(container)}, which is {words.opening(container)}: open "
                          "that first.")
        if "robot_at" in said:
            thing = said["robot_at"][0]
            raise Refused(f"{words.of(thing)} is {words.distance_m(thing):.1f} m away, out of reach: go there first.")
        if lacking:
            raise Refused(f"This needs that {' '.join(lacking[0])} holds, which it does not.")
        return operator

    def _then(self, operator: Operator) -> Operator | None:
        """What the robot drives to a thing for, by what it can do there; policies of Navigate are told so."""
        thing, symbols, held = operator.args[0], self._run.symbols, self._words.held()
        if thing in symbols.goals:
            return None if held is None else self._operator("place", held, thing)
        if held is not None:
            return None
        if thing in symbols.objects:
            return self._operator("pick", thing)
        return self._operator("close" if self._run.is_true(("opened", thing)) else "open", thing)

    # ------------------------------------------------------------------ carried out

    def _finish(self) -> None:
        """Make steps until nothing is under way."""
        while not (self._run.done or self._run.waits):
            self._step()

    def _carried_out(self, operator: Operator) -> Answer:
        run, skill, before = self._run, skill_of(operator.name), self._run.env.steps
        run.begin(operator, self._then(operator) if skill == "navigate" else None)
        self._finish()
        if run.done:
            over = self._ran_out() if run.report.end == "time_limit" else f"it ended with {run.report.end}"
            return Answer(f"The episode is over: {over}.")
        record = run.report.records[-1]
        done = run.is_done and (skill != "navigate" or record.ended == "done")
        why = "" if done else f"{self._why(record.ended, skill)}, and "
        said = f"{'Done' if done else 'Failed'}: {why}{self._state(operator)}"
        if skill == "navigate" and not done and not run.has_goal_pose:
            said += "; no place was found to stand and work there"
        return Answer(f"{said}. It took {spoken_time(run.env.steps - before)}; {self._words.time_left()}")

    def _state(self, operator: Operator) -> str:
        """What has become of the thing of a step."""
        words, run, thing = self._words, self._run, operator.args[0]
        verb = operator.name.split("_")[0]
        if verb == "navigate":
            return f"{words.of(thing)} is {words.distance_m(thing):.1f} m away"
        if verb == "pick":
            return words.hand()
        if verb != "place":
            return f"{words.of(thing)} is {words.opening(thing)}"
        goal = operator.args[1]
        off_m = apart_m(run.world, run.symbols, thing, goal)
        return f"{words.of(thing)} is {off_m:.2f} m from {goal}, and {words.hand()}"

    def _why(self, ended: str, skill: str) -> str:
        """Why a step that failed came to its end."""
        reasons = {"time_limit": f"{skill} reached its limit of {self._run.rules.max_steps[skill]} steps",
                   "held_up": "something is in the robot's way", "lost": "the hand has lost what it held"}
        return reasons.get(ended, f"{skill} ended without its effect")

    def _ran_out(self) -> str:
        return f"its limit of {spoken_time(self._run.env.max_steps)} was reached"


def checked(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call. Refused for a tool or an argument that there is not, and for another type."""
    tool = TOOLS.get(name)
    if tool is None:
        raise Refused(f"There is no tool {printable(repr(name), _SAID)}: tools are {', '.join(TOOLS)}.")
    for key, value in arguments.items():
        if key not in tool.arguments:
            raise Refused(f"{name} has no argument {printable(repr(key), _SAID)}: it takes "
                          f"{', '.join(tool.arguments) or 'none'}.")
        kind, meaning, _ = tool.arguments[key]
        if not isinstance(value, TYPES[kind]):
            raise Refused(f"{key}={printable(repr(value), _SAID)} is not allowed: it must be a {kind}, {meaning}.")
    for key, (_, meaning, optional) in tool.arguments.items():
        if not optional and key not in arguments:
            raise Refused(f"{name} needs {key}: {meaning}.")
    return dict(arguments)
