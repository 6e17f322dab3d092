"""A screen for render_mode="human" where there is none."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np


class Screen:
    """Stands in for Tk: keeps the pictures that are shown. `update` is where a person may close the window."""

    def __init__(self):
        self.pictures, self.open, self.closes = [], False, lambda: None
        nothing = lambda *_, **__: None  # noqa: E731
        label = SimpleNamespace(pack=nothing, configure=lambda image: self.pictures.append(image))
        self.update = nothing
        self.tkinter = SimpleNamespace(
            Tk=self.tk, Label=lambda root, borderwidth: label, PhotoImage=self.photo,
            TclError=type("TclError", (Exception,), {}))

    def tk(self):
        self.open = True
        return SimpleNamespace(title=lambda text: None, update=lambda: self.update(), destroy=self.destroy,
                               protocol=lambda name, close: setattr(self, "close", close))

    def destroy(self):
        self.open = False

    def photo(self, data, format):
        head, pixels = data.split(b" 255\n", 1)
        kind, width, height = head.split()
        assert (kind, format) == (b"P6", "PPM")
        return np.frombuffer(pixels, np.uint8).reshape(int(height), int(width), 3)
