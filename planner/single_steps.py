"""Steps that somebody else chooses, one at a time: an agent calls skills as tools where `Executor` follows a plan."""

from __future__ import annotations

from planner.execute import Executor, Report
from planner.pddl import Atom, Operator, domain_of, ground
from planner.predicates import World, holds
from planner.rules import Step, skill_of
from planner.scenario import problem_file
from rearrange.home.apartments.episodes import Episode


class SingleSteps(Executor):
    """Carries a step out as one of a plan: afterwards the robot withdraws and leads its arm home. Then it waits.

    operators: everything that can be done in this episode, whether or not it is possible now.
    """

    operators: tuple[Operator, ...] = ()

    def reset(self, episode: int | Episode, seed: int = 0) -> Report:
        """Load an episode and wait. Raises UserError where its goal cannot be reached by any plan."""
        report = super().reset(episode, seed)
        self.steps = []
        text, path = report.plan.problem, problem_file(self.env.config.problem)
        self.operators = ground(text, path, domain_of(text, path), self.symbols.types).operators
        return report

    @property
    def waits(self) -> bool:
        """Whether no step is under way."""
        return self._phase == "waits"

    @property
    def goal(self) -> tuple[Atom, ...]:
        """The facts that the scenario asks for."""
        return tuple(sorted(self._goal))

    def is_true(self, atom: Atom, world: World | None = None) -> bool:
        """Whether a fact holds: as far as is known, or in a world."""
        return holds(world or self.world, self.symbols, atom, self.rules.at_m)

    @property
    def is_done(self) -> bool:
        """Whether the effects of the last step hold, as far as is known."""
        return self._effects_hold(self.steps[0], self.world)

    def begin(self, operator: Operator, after: Operator | None = None) -> None:
        """Begin a step. after: what the robot drives there for, of navigation."""
        self.steps, self.at = [Step(operator, skill_of(operator.name), after)], 0
        super()._begin_next()

    def begin_stop(self) -> None:
        """Begin the wait that ends with the stop action, and the episode with it."""
        self._phase, self._count, self.request = "wait", 0, None

    def leave(self) -> None:
        """End the episode as it stands, without the stop action."""
        self._give_up("left")

    def _begin_next(self) -> None:
        self._phase, self.request = "waits", None

    def _take_stock(self, step: Step, ended: str, arm_is_home: bool = False) -> None:
        """Note a failure, let go of what no step could place, and lead the arm home."""
        if not self._effects_hold(step, self.world):
            self._note_failure(step)
            if self.rules.recovery in ("retry", "replan"):
                self._arguments.look_again()
        if self.world.is_holding and self.world.held not in self.symbols.objects.values():
            self._move(None, -1.0, None)
        if self.done:
            return
        if self.rules.reset_arm and not arm_is_home:
            self._phase, self._count, self.request = "reset_arm", 0, None
        else:
            self._begin_next()
