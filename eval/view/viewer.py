"""`rearrange view`: runs what was chosen, shows it, and does what is pressed in the page, until Ctrl-C."""

from __future__ import annotations

import contextlib
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from eval.view import choices, demonstrations
from eval.view.cameras import Cameras
from eval.view.guard import Guard
from eval.view.home_in_scene import HomeInScene, light
from eval.view.page import Page
from eval.view.server import address, make_server, spoken, stop
from rearrange.command_line.composition.options import MANY, ViewOptions
from rearrange.command_line.runs.names import folder_name
from rearrange.home.errors import UserError
from rearrange.home.pictures.picture import SUN_DIRECTION
from rearrange.home.settings.remote import RemoteError
from trainer.logs.printable import first_line, printable

MISTAKES = UserError, RemoteError
MOST_TOLD = 1000  # characters of a note in the page
FRAME_S, SIGHT_S, TEXT_S, CURVES_S = 1 / 30, 0.2, 0.15, 0.5  # how often at most each is shown anew
IDLE_S = 0.02
END_S = 2.0  # the end of an episode can be read for so long
SHOWN_PIXELS = 208  # of what the robot sees
HAND_SCALE_M = 0.22  # of the arrows that pull the hand
LONG_WORDS = 80  # characters of a task that is no heading any more
WITH_SIM = ("drive_to", "move_hand", "face")  # methods of the driver that take the simulator
OF_THE_DRIVER = (*WITH_SIM, "drive", "grip", "halt", "call_stop")


def view(options: ViewOptions, prepare: choices.Prepare) -> None:
    """Show what the settings say, until Ctrl-C. UserError for what cannot be shown, or an address in use."""
    group = next(group for group in choices.GROUPS if options.choices.get(group))
    task = next(word for word in reversed(options.words) if word.startswith(f"{group}="))
    options = replace(options, agent=choices.asked_agent(options, task))
    address(options.host, options.port)  # before anything takes its time
    Guard(options.host, options.allowed_hosts)
    if options.out is not None:
        demonstrations.Demonstrations(Path(options.out)).check()
    chosen = choices.choose(options.words, task, options.agent, options.seed, prepare)
    server = make_server(options.host, options.port, options.allowed_hosts)
    try:
        _run(Viewer(server, options, prepare, task, chosen), options, task, server.get_port())
    finally:
        chosen.session.close()
        stop(server)


def _run(viewer: Viewer, options: ViewOptions, task: str, port: int) -> None:
    """Run the viewer until Ctrl-C."""
    print(f"{task.replace('=', ' ')}   agent {options.agent}\nlook at http://{spoken(options.host)}:{port}; it plays "
          "once a browser is there; Ctrl-C ends it", flush=True)
    if options.host not in ("127.0.0.1", "localhost", "::1"):
        print("other machines that reach this one can look and drive, too", flush=True)
    try:
        while True:
            viewer.turn()
    finally:
        viewer.close()


def _says(error: BaseException) -> str:
    """One sentence about an error; an error that the code did not foresee comes with its place in the code."""
    if isinstance(error, MISTAKES):
        return str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {first_line(error)} ({last.filename}:{last.lineno})."


class Viewer:
    """One turn of the loop after another: what is pressed, one step, what is shown."""

    def __init__(self, server: Any, options: ViewOptions, prepare: choices.Prepare, task: str,
                 chosen: choices.Chosen) -> None:
        self._server, self._typed, self._prepare = server, options.words, prepare
        self._output = Path(options.output)
        self._kept = demonstrations.Demonstrations(Path(options.out) if options.out is not None
                                                   else self._output / "teleop")
        self._told = ""  # of what fails again and again
        self.playing, self._steps = not options.paused, 0
        self._task, self._agent, self._seed = task, options.agent, options.seed
        self._page, self._home = Page(server, list(dict.fromkeys([*choices.tasks(), task])),
                                      options.speed), HomeInScene(server.scene)
        light(server.scene, SUN_DIRECTION)
        self._due = self._ended_at = 0.0
        self._shown_at: dict[str, float] = {}
        self._cameras = Cameras(server, self._page.cameras)
        self._add_hand()
        self._page.on_floor_click("drive_to")
        self._page.record.value = options.out is not None
        self._start(chosen, options.episode)
        self._page.choose(task, choices.agents(task, self._output, options.agent), options.agent, options.seed)

    # ------------------------------------------------------------------ the loop

    def turn(self) -> None:
        """Do what was pressed, then one step if it is time for one. Nothing that fails ends the page."""
        for name, values in self._page.pressed():
            self._told = ""
            self._try(self._press, name, *values)
        if self._page.dropped:
            print(f"rearrange view: {self._page.dropped} things were pressed too fast, and dropped.", file=sys.stderr,
                  flush=True)
            self._page.dropped = 0
        self._try(self._go_on)

    def _press(self, name: str, *values: Any) -> None:
        if name in OF_THE_DRIVER:
            self._drive(name, *([self.session.sim] if name in WITH_SIM else []), *values)
        else:
            getattr(self, f"_do_{name}")(*values)

    def _go_on(self) -> None:
        if (point := self._pulled_to) is not None:
            self._pulled_to = None
            self._drive("hand_to", self.session.sim, point)
        session = self.session
        if session.done and self.playing and self._page.goes_on.value and time.monotonic() > self._ended_at + END_S:
            self._begin(session.number + 1)
        elif not session.done and self._steps_now():
            self._advance()
        else:
            self._show()
            time.sleep(IDLE_S)

    def _try(self, call: Callable[..., None], *values: Any) -> None:
        """Call something. Whatever fails, also in the user's code, is told in the page and here; the page stays."""
        try:
            call(*values)
        except (Exception, SystemExit) as error:
            self.playing, self._steps = False, 0
            said = printable(_says(error), MOST_TOLD)
            if said != self._told:
                self._told = said
                self._page.tell("Not possible", said)
                print(f"rearrange view: {said}", file=sys.stderr, flush=True)
                with contextlib.suppress(OSError, UserError):
                    self._choose_again()
            time.sleep(IDLE_S)

    def _choose_again(self) -> None:
        self._page.choose(self._task, choices.agents(self._task, self._output, self._agent), self._agent, self._seed)

    def _steps_now(self) -> bool:
        if self._steps:
            self._steps -= 1
            return True
        driver = self.session.driver
        return self.playing and self._page.was_seen and (driver is None or driver.is_busy or not self._page.waits.value)

    def _advance(self) -> None:
        session = self.session
        session.step()
        self._times.append(session.env.steps * session.step_s)
        for name, value in session.env.reward_sums.items():
            self._sums.setdefault(name, []).append(value)
        if (value := session.value) is not None:
            self._values.append(value)
            self._value_times.append(self._times[-1])
        if session.done:
            self._ended_at = time.monotonic()
            self._show(everything=True)
            if session.recorded is not None and self._page.record.value:
                self._keep(session.recorded)
        self._pace()

    def _pace(self) -> None:
        """Show, and wait until the time of one action has passed."""
        self._show()
        now = time.monotonic()
        self._due = max(self._due + self.session.step_s / self._page.speed, now - FRAME_S)
        time.sleep(max(0.0, self._due - now))

    def _keep(self, episode: Any) -> None:
        try:
            line = self._kept.add(self._chosen.made, self._chosen.options, episode)
        except UserError as error:
            self._page.recorded.content = str(error)
            raise
        self._page.recorded.content = line
        print(line, flush=True)

    # ------------------------------------------------------------------ what is chosen

    def _begin(self, number: int) -> None:
        """Begin an episode of what runs."""
        if number > MANY:
            raise UserError(f"episodes have numbers up to {MANY:,}.")
        try:
            self._start(self._chosen, number)
        except (Exception, SystemExit):
            self.session.done, self.session.reason = True, "it cannot be begun"
            raise

    def _start(self, chosen: choices.Chosen, number: int) -> None:
        """Begin an episode; nothing changes here if that fails."""
        session = chosen.session
        session.taped = self._page.record.value
        if session.taped and session.driver:
            self._kept.check_fits(chosen.made, chosen.options)
        chosen.take_newest()
        session.begin(number)
        self._chosen, self.session = chosen, session
        session.env.during_action = self._pace
        self._times, self._sums, self._values, self._value_times = [], {}, [], []
        session.forget_map()
        self._page.map.label = session.map_label
        self._page.episode.value = session.number
        self._page.drive.visible = self._hand.visible = session.driver is not None
        self._cameras.begin(session.sim)
        self._show(everything=True)

    def _choose(self, task: str, agent: str, seed: int) -> None:
        """Run something else; what runs goes on where that fails."""
        self._page.head.content = f"### {task.partition('=')[2].replace('_', ' ')}\nis being prepared ..."
        before = self.session
        self._start(choices.choose(self._typed, task, agent, seed, self._prepare), int(self._page.episode.value))
        before.close()
        self._task, self._agent, self._seed = task, agent, seed
        self._choose_again()

    def close(self) -> None:
        """Give up what runs, and write what could not be written before."""
        self.session.close()
        self._kept.close()

    # ------------------------------------------------------------------ what can be pressed

    def _do_play(self) -> None:
        self.playing = True
        if self.session.done:
            self._begin(self.session.number + 1)

    def _do_pause(self) -> None:
        self.playing = False

    def _do_toggle(self) -> None:
        self._do_pause() if self.playing else self._do_play()

    def _do_step(self) -> None:
        self.playing, self._steps = False, self._steps + 1

    def _do_next(self) -> None:
        self._begin(self.session.number + 1)

    def _do_task(self, task: str) -> None:
        there = choices.agents(task, self._output)
        self._choose(task, self._agent if self._agent in there else there[0], self._seed)

    def _do_agent(self, agent: str) -> None:
        self._choose(self._task, agent, self._seed)

    def _do_seed(self, seed: float) -> None:
        self._choose(self._task, self._agent, int(seed))

    def _do_episode(self, number: float) -> None:
        self._begin(int(number))

    def _do_record(self, on: bool) -> None:
        if not on:
            self._page.recorded.content = ""
            return
        try:
            self._kept.check()
        except UserError:
            self._page.record.value = False
            raise
        if self.session.env.steps == 0:
            self._begin(self.session.number)
        begins = "now" if self.session.taped else "with the next episode"
        folder = self._kept.root / folder_name(self.session.name)
        self._page.recorded.content = f"Recording begins {begins}; an episode is kept when it is over, in {folder}"

    def _do_toggle_grip(self) -> None:
        if self.session.driver:
            self._drive("grip", not self.session.driver.grips)

    def _drive(self, name: str, *values: Any) -> None:
        """Call the driver, where a person drives."""
        if driver := self.session.driver:
            getattr(driver, name)(*values)

    def _add_hand(self) -> None:
        """Add arrows at the hand, which pull it."""
        self._hand = self._server.scene.add_transform_controls(
            "/hand", HAND_SCALE_M, disable_rotations=True, disable_sliders=True, depth_test=False, visible=False)
        self._pulled = False
        self._pulled_to: tuple[float, float, float] | None = None

        @self._hand.on_update  # of finite numbers: gate.py
        async def _(event: Any) -> None:  # in order
            self._pulled = event.phase != "end"
            self._pulled_to = tuple(float(value) for value in event.target.position)

    # ------------------------------------------------------------------ what is shown

    def _show(self, everything: bool = False) -> None:
        for what, every_s, show in (("home", FRAME_S, self._show_home), ("text", TEXT_S, self._show_text),
                                    ("sight", SIGHT_S, self._show_sight), ("curves", CURVES_S, self._show_curves)):
            now = time.monotonic()
            if everything or now - self._shown_at.get(what, 0.0) >= every_s:
                self._shown_at[what] = now
                show()

    def _show_home(self) -> None:
        session, sim = self.session, self.session.sim
        self._home.low_walls = self._page.low_walls.value
        with self._server.atomic():
            session.show(self._home)
            if session.driver and not (self._pulled or session.driver.is_busy):
                self._hand.position = np.array(sim.ee_position)
        self._cameras.move(sim)

    def _show_text(self) -> None:
        session, page = self.session, self._page
        words = session.words or session.name.replace("_", " ")
        words = words[:1].upper() + words[1:]
        head = f"#### {words}" if len(words) < LONG_WORDS else f"**{words}**"
        if session.done:
            head += "\n\n**success**" if session.success else f"\n\n**failure**: {session.reason}"
        page.head.content = head
        page.now.content = "\n".join(f"- {line}" for line in [*self._lines(), page.watching])
        steps, at = session.plan()
        page.steps.visible = bool(steps)
        page.plan.content = "\n".join(f"{k + 1}. **{step}**  (now)" if k == at else f"{k + 1}. ~~{step}~~" if k < at
                                      else f"{k + 1}. {step}" for k, step in enumerate(steps))
        if session.driver:
            page.grip.value = session.driver.grips

    def _lines(self) -> list[str]:
        session = self.session
        first, *rest = session.lines()
        lines = [first + ("" if self.playing or session.done else ", paused"), *rest]
        if self._chosen.followed:
            lines.append("policy: " + ", ".join(f"{self._chosen.files[skill].stem} of {run.name}"
                                                for skill, run in self._chosen.followed.items()))
        if session.driver and session.driver.note:
            lines.append(f"**{session.driver.note}**")
        return [*lines, f"{session.env.episode.scene}, {session.env.episode.id}"]

    def _show_sight(self) -> None:
        if not self._page.sight.value:
            return
        self._page.depth.image, colour, self._page.map.image = self.session.pictures(SHOWN_PIXELS)
        self._page.colour.visible = colour is not None
        if colour is not None:
            self._page.colour.image = colour

    def _show_curves(self) -> None:
        self._page.rewards.show(self._times, {name: values for name, values in self._sums.items() if any(values)})
        self._page.values.show(self._value_times, {"value": self._values} if self._values else {})
