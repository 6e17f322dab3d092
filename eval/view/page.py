"""The page: what can be pressed and chosen, and what is shown beside the home.

What is pressed comes back as calls in a queue, since the browsers' threads must not touch the simulator. The server's
thread puts them there in the order in which they come.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import viser
from viser import uplot

from eval.view.cameras import WAYS
from eval.view.driver import FACINGS, HAND_STEP_M
from rearrange.command_line.composition.options import MANY, ViewOptions

BACKGROUND_RGB = (38, 42, 50)
SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 100.0)
COLOURS = ("#4896eb", "#f57d15", "#2ea057", "#c94137", "#b58be0", "#e0c341", "#3fbfc4", "#e887b6", "#9aa0aa", "#8d6e4f")
CURVE_POINTS = 400
MOST_WAITING = 64  # calls; what is pressed beyond them is dropped
MOST_SEED = ViewOptions.__dataclass_fields__["seed"].metadata["at_most"]
KEYS = """\
keys | do | keys | do
--- | --- | --- | ---
**I** **K** | forward, back | **T** **G** | hand up, down
**J** **L** | turn left, right | **F** **H** | hand left, right
**C** | grip, let go | **R** **Y** | hand ahead, back
**X** | stop moving | **Z** | say: it is done
**P** **O** **N** | play or pause, one step, next episode | **W A S D** | move the camera

Shift and a click on the floor drives there; the arrows at the hand pull it."""

BASE = {"forward": (1.0, 0.0), "back": (-1.0, 0.0), "turn left": (0.0, 1.0), "turn right": (0.0, -1.0)}
HAND = {"up": (0.0, 0.0, 1.0), "down": (0.0, 0.0, -1.0), "left": (0.0, 1.0, 0.0), "right": (0.0, -1.0, 0.0),
        "ahead": (1.0, 0.0, 0.0), "back": (-1.0, 0.0, 0.0)}


class Page:
    """The elements of the page, all of which every browser shares but for the camera. calls: what was pressed."""

    def __init__(self, server: viser.ViserServer, tasks: Sequence[str], speed: float) -> None:
        self.server, self.calls = server, queue.Queue(MOST_WAITING)
        self.dropped = 0  # calls, since `pressed`
        self.cameras: dict[int, str] = {}  # of each browser
        self.was_seen = False  # a browser has come
        gui = server.gui
        gui.configure_theme(dark_mode=True, show_logo=False, show_share_button=False, brand_color=(72, 150, 235))
        server.scene.set_background_image(np.full((4, 4, 3), BACKGROUND_RGB, np.uint8), format="png")
        gui.set_panel_label("rearrange")
        gui.main_panel.dock_right()
        gui.main_panel.set_width(380)
        self._add_run(gui)
        self._add_drive(gui)
        self._add_choices(gui, tasks, speed)
        with gui.add_folder("Reward and value", expand_by_default=True):
            self.rewards = _Curves(gui, "sum of each reward term")
            self.values = _Curves(gui, "value: reward that the policy expects")
        self._add_sight(gui)
        self._add_keys(gui)
        server.on_client_connect(self._greet)
        server.on_client_disconnect(self._forget)

    # ------------------------------------------------------------------ what there is

    def _add_run(self, gui: viser.GuiApi) -> None:
        self.head = gui.add_markdown("")
        self.buttons = gui.add_button_group("", ("Play", "Pause", "Step", "Next"))
        self._on(self.buttons.on_click, lambda: (self.buttons.value.lower(),))
        self.now = gui.add_markdown("")
        self.steps = gui.add_folder("Plan", visible=False)
        with self.steps:
            self.plan = gui.add_markdown("")

    def _add_choices(self, gui: viser.GuiApi, tasks: Sequence[str], speed: float) -> None:
        with gui.add_folder("What and who"):
            self.task = gui.add_dropdown("Task", tuple(tasks))
            self.agent = gui.add_dropdown("Agent", ("expert",))
            self.seed = gui.add_number("Seed", 0, min=0, max=MOST_SEED, step=1)
            self.episode = gui.add_number("Episode", 0, min=0, max=MANY, step=1)
            for name in ("task", "agent", "seed", "episode"):
                self._on_choice(getattr(self, name), name)
            self.goes_on = gui.add_checkbox("Go on with the next episode", True)
        self.looks = gui.add_folder("View")
        with self.looks:
            there = sorted({*SPEEDS, speed})
            self._speed = gui.add_dropdown("Speed", tuple(map(_spoken, there)), initial_value=_spoken(speed))
            self._speeds = {_spoken(each): each for each in there}
            self.low_walls = gui.add_checkbox("Cut walls down", True)
            self.sight = gui.add_checkbox("What the robot sees", True)

    def _add_drive(self, gui: viser.GuiApi) -> None:
        self.drive = gui.add_folder("Drive", visible=False)
        with self.drive:
            base = gui.add_button_group("Base", tuple(BASE))
            self._on(base.on_click, lambda: ("drive", *BASE[base.value]))
            for label, names in (("Hand", ("up", "down")), ("", ("left", "right", "ahead", "back"))):
                hand = gui.add_button_group(label, names)
                self._on(hand.on_click,
                         lambda hand=hand: ("move_hand", *(HAND_STEP_M * value for value in HAND[hand.value])))
            face = gui.add_button_group("Cup faces", tuple(FACINGS))
            self._on(face.on_click, lambda: ("face", FACINGS[face.value]))
            self.grip = gui.add_checkbox("Grip", False)
            self._on_choice(self.grip, "grip")
            other = gui.add_button_group("", ("stop moving", "it is done"))
            self._on(other.on_click, lambda: ("halt" if other.value == "stop moving" else "call_stop",))
            self.waits = gui.add_checkbox("Time stands still while nothing moves", True)
            self.record = gui.add_checkbox("Record", False)
            self._on_choice(self.record, "record")
            self.recorded = gui.add_markdown("")
            with gui.add_folder("Keys and mouse", expand_by_default=False):
                gui.add_markdown(KEYS)

    def _add_sight(self, gui: viser.GuiApi) -> None:
        self.panel = gui.add_panel()
        blank = np.zeros((128, 128, 3), np.uint8)
        with self.panel.add_tab("The robot's sight"):
            self.depth = gui.add_image(blank, label="Depth: near yellow, far violet", format="png")
            self.colour = gui.add_image(blank, label="Colour", format="png")
            self.map = gui.add_image(blank, label="Its map of the floor, ahead is up", format="png")
        self.panel.dock_left()
        self.panel.set_width(230)

    def _add_keys(self, gui: viser.GuiApi) -> None:
        keys = {"P": ("Play or pause", "toggle"), "O": ("One step", "step"), "N": ("Next episode", "next"),
                "C": ("Grip or let go", "toggle_grip"), "X": ("Stop moving", "halt"),
                "Z": ("It is done", "call_stop"),
                **{key: (f"Base: {name}", "drive", *BASE[name]) for key, name in zip("IKJL", BASE)},
                **{key: (f"Hand: {name}", "move_hand", *(HAND_STEP_M * value for value in HAND[name]))
                   for key, name in zip("TGFHRY", HAND)}}
        for key, (label, *call) in keys.items():
            self._on(gui.add_command(label, hotkey=key).on_trigger, lambda call=call: call)

    async def _greet(self, client: viser.ClientHandle) -> None:
        """Give a browser that opened the page its camera. It cannot have left: both happen in the server's thread."""
        self.cameras[client.client_id] = WAYS[0]
        self.was_seen = True
        with self.looks:
            camera = client.gui.add_dropdown("Camera", WAYS, order=-1.0)

        @camera.on_update
        async def _(event: Any) -> None:
            if client.client_id in self.cameras:
                self.cameras[client.client_id] = camera.value

    async def _forget(self, client: viser.ClientHandle) -> None:
        self.cameras.pop(client.client_id, None)

    # ------------------------------------------------------------------ what is pressed

    def _on(self, register: Callable[..., Any], call: Callable[[], Sequence[Any]]) -> None:
        """Queue what `call` gives, a name and values, whenever a person presses an element."""
        async def pressed(event: Any) -> None:
            if event.client is not None:  # a person, not we
                self._call(*call())

        register(pressed)

    def _on_choice(self, element: Any, name: str) -> None:
        self._on(element.on_update, lambda: (name, element.value))

    def _call(self, name: str, *values: Any) -> None:
        try:
            self.calls.put_nowait((name, values))
        except queue.Full:
            self.dropped += 1

    def pressed(self) -> list[tuple[str, tuple[Any, ...]]]:
        """What was pressed since it was asked before."""
        found = []
        while True:
            try:
                found.append(self.calls.get_nowait())
            except queue.Empty:
                return found

    def on_floor_click(self, name: str) -> None:
        """Shift and a click: a call of this name with the point of the floor (world, m)."""
        @self.server.scene.on_click(modifier="shift")
        async def _(event: Any) -> None:
            (x, y, z), (dx, dy, dz) = event.ray_origin, event.ray_direction
            if dz < -1e-3 and z > 0:
                self._call(name, x - dx * z / dz, y - dy * z / dz)

    @property
    def watching(self) -> str:
        """How many browsers look, in words."""
        return f"{len(self.cameras)} browsers watch" if len(self.cameras) != 1 else "1 browser watches"

    @property
    def speed(self) -> float:
        """Times that of the real robot."""
        return self._speeds[self._speed.value]

    # ------------------------------------------------------------------ what is told

    def tell(self, title: str, text: str) -> None:
        """A note that goes away, in every browser."""
        for client in self.server.get_clients().values():
            client.add_notification(title, text, auto_close_seconds=8.0)

    def choose(self, task: str, agents: Sequence[str], agent: str, seed: int) -> None:
        """Show what was chosen."""
        self.seed.value = seed
        self.task.value = task
        self.agent.options = tuple(agents)
        self.agent.value = agent


def _spoken(speed: float) -> str:
    return f"x {speed:g}"


class _Curves:
    """A chart whose lines are known once an episode runs."""

    def __init__(self, gui: viser.GuiApi, title: str) -> None:
        self._chart = gui.add_uplot((np.zeros(1), np.zeros(1)), (uplot.Series(label="s"), uplot.Series(label="-")),
                                    title=title, height=190, scales={"x": uplot.Scale(time=False)}, visible=False)
        self._names: tuple[str, ...] = ()

    def show(self, times_s: Sequence[float], curves: dict[str, Sequence[float]]) -> None:
        """Lines over time; no curves: no chart."""
        self._chart.visible = bool(curves) and len(times_s) > 1
        if not self._chart.visible:
            return
        kept = np.unique(np.linspace(0, len(times_s) - 1, min(CURVE_POINTS, len(times_s))).astype(int))
        if tuple(curves) != self._names:
            self._names = tuple(curves)
            self._chart.series = (uplot.Series(label="s"),
                                  *(uplot.Series(label=name.replace("_", " "), stroke=COLOURS[k % len(COLOURS)],
                                                 width=2) for k, name in enumerate(curves)))
        self._chart.data = tuple(np.asarray(values, float)[kept] for values in (times_s, *curves.values()))
