"""What an agent is told of the tools: their names, what each takes, and the page that goes before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MANUAL = """\
You control a robot with one arm and a hand in a home. Call `list` first: it says the task, the names that the
other tools take, and how far the task is done. One call is carried out at a time, and time stands still between calls.
Go to a thing before you pick, place, open or close there. The hand holds one object; open and close need it empty.
What lies in a drawer or fridge can be picked when that is open, after going to the object once more. A call that fails
may be repeated, often after going there again; after a few failures do something else first. Call `done` when the
goal holds: it ends the episode, and the outcome is what the home is like then."""


@dataclass(frozen=True)
class Tool:
    """A tool, and its arguments by name: a type of JSON, what it means, and whether it can be left out."""

    name: str
    text: str
    arguments: Mapping[str, tuple[str, str, bool]] = field(default_factory=dict)

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        properties = {name: {"type": kind, "description": text} for name, (kind, text, _) in self.arguments.items()}
        return {"type": "object", "properties": properties, "additionalProperties": False,
                "required": [name for name, (_, _, optional) in self.arguments.items() if not optional]}


_CONTAINER = ("string", "a drawer or fridge, as cabinet_0 or fridge", False)
TOOLS = {tool.name: tool for tool in (
    Tool("list", "Say the task, the objects and places by the names that the other tools take, what the hand holds, "
                 "which facts of the goal hold, and how much time is left."),
    Tool("look", "Say what the head camera's detector finds now, and where.",
         {"picture": ("boolean", "true adds the camera's picture", True)}),
    Tool("go", "Drive to an object, goal, drawer or fridge, and stand so that it can be worked on.",
         {"to": ("string", "name of an object or place, as object_0, goal_0, cabinet_0 or fridge", False)}),
    Tool("pick", "Take an object with the empty hand.", {"object": ("string", "an object, as object_0", False)}),
    Tool("place", "Put what the hand holds at a goal.", {"goal": ("string", "a goal, as goal_0", False)}),
    Tool("open", "Open a drawer or fridge with the empty hand.", {"container": _CONTAINER}),
    Tool("close", "Close a drawer or fridge with the empty hand.", {"container": _CONTAINER}),
    Tool("done", "End the episode, and learn whether the goal holds. Nothing can be called afterwards."))}
TYPES = {"string": str, "boolean": bool}
