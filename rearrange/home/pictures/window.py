"""A window that shows an environment's pictures: what `render_mode="human"` opens.

It is Tk's, which most Pythons have.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any

import gymnasium
import numpy as np

from rearrange.home.errors import UserError
from rearrange.home.settings.environment import RENDER_MODES

_INSTEAD = 'use render_mode="rgb_array", whose render() gives the picture, or watch in a browser with rearrange view'


class Window:
    """Shows one picture after another, no faster than they follow each other in the robot's time. Who closes the
    window sees no more; the environment goes on.
    """

    def __init__(self, title: str) -> None:
        """Open it. UserError where there is no display, or no Tk."""
        try:
            import tkinter
        except ImportError:
            raise UserError('render_mode="human" needs tkinter, which this Python does not have: install it (on Debian '
                            f"and Ubuntu: sudo apt install python3-tk), or {_INSTEAD}.") from None
        try:
            self._root = tkinter.Tk()
        except tkinter.TclError as error:
            raise UserError(f'render_mode="human" opens a window, and there is no display here ({error}): '
                            f"{_INSTEAD}.") from None
        self._photo = tkinter.PhotoImage
        self._root.title(title)
        self._root.protocol("WM_DELETE_WINDOW", self.close)
        self._label = tkinter.Label(self._root, borderwidth=0)
        self._label.pack()
        self._next_s = 0.0

    def show(self, picture: np.ndarray, fps: float) -> None:
        """A picture (height, width, 3) uint8, 1 / fps seconds after the one before or later."""
        if self._root is None:
            return
        time.sleep(max(0.0, self._next_s - time.monotonic()))
        self._next_s = time.monotonic() + 1.0 / fps
        height, width, _ = picture.shape
        # Tk forgets a picture that Python does not hold.
        self._shown = self._photo(data=b"P6 %d %d 255\n" % (width, height) + picture.tobytes(), format="PPM")
        self._label.configure(image=self._shown)
        self._root.update()

    def close(self) -> None:
        """Close it, if it is open."""
        if self._root is not None:
            self._root.destroy()
            self._root = None


class WatchedEnv(gymnasium.Env):
    """An environment that gives pictures or, with `render_mode="human"`, shows one at each reset and step."""

    metadata: dict[str, Any] = {"render_modes": [*RENDER_MODES]}
    episode: Any = None

    def __init__(self, render_mode: str | None) -> None:
        self.render_mode = render_mode
        self._window = Window("rearrange") if render_mode == "human" else None

    @abstractmethod
    def picture(self) -> np.ndarray:
        """What a spectator sees, uint8 (height, width, 3)."""

    def render(self) -> np.ndarray | None:
        """The picture; None where the window shows it, where there is no render_mode, and before the first reset."""
        if self.render_mode is None or self.episode is None:
            return None
        if self._window is None:
            return self.picture()
        self._window.show(self.picture(), self.metadata["render_fps"])
        return None

    def _show(self) -> None:
        """What a reset and a step end with."""
        if self._window is not None:
            self.render()

    def close(self) -> None:
        if self._window is not None:
            self._window.close()
