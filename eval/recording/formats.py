"""The formats of data sets by their words, `format=`."""

from __future__ import annotations

from eval.recording.lerobot import LeRobotFiles

FORMATS = {"lerobot": LeRobotFiles}
