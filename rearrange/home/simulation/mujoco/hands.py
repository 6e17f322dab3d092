"""What a hand does in a home, and which class does it for each kind of `rearrange.home.robot.robot.Hand`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import mujoco

from rearrange.home.simulation.mujoco.fingers import Fingers
from rearrange.home.simulation.mujoco.suction import Suction

if TYPE_CHECKING:
    from rearrange.home.settings.environment import SimulatorConfig
    from rearrange.home.simulation.mujoco.compiled_home import CompiledHome


class HandInHome(Protocol):
    """The hand of one robot. Objects are known by their slot in the compiled home, handles by their joint's name."""

    slot: int | None
    """The object that it holds."""
    handle: str | None
    """The drawer or door by whose handle it holds."""
    broken: bool
    """The hold was torn off in the last step."""
    released: bool
    """Something was let go by command in the last step."""

    def configure(self, config: SimulatorConfig) -> None:
        """Take over the settings that it has."""

    def before_step(self, grip: float | None) -> None:
        """Send its motors where a command wants them, before 1/30 s of physics. grip: see `Simulator.step`."""

    def after_step(self, grip: float | None, wanted_slot: int | None, wanted_handle: str | None) -> None:
        """Say what it holds after the physics; of several things that it touches the wanted one."""

    def touches(self) -> list[int]:
        """Geoms that it could hold now."""

    def hold_object(self, slot: int) -> None:
        """Hold an object where it is now."""

    def hold_handle(self, name: str) -> None:
        """Hold a handle where the hand is now."""

    def release(self) -> None:
        """Let go of whatever is held."""

    def stretch_m(self) -> float:
        """How far the held thing has been pulled from its place in the hand, or slipped; 0 when nothing is held."""


HANDS = {"suction": Suction, "fingers": Fingers}
"""Kind of a hand -> its class, made of model, data and home."""


def hand_of(model: mujoco.MjModel, data: mujoco.MjData, home: CompiledHome) -> HandInHome:
    """The hand of the robot in a home."""
    return HANDS[home.robot.hand.kind](model, data, home)
