"""Colour images as H.264: one stream an episode, streams joined into one mp4 file without encoding again."""

from __future__ import annotations

import math
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rearrange.home.files import open_regular
from trainer.logs.printable import printable

QUALITY = 18  # x264's crf: differences can hardly be seen
KEY_EVERY = 2  # frames, as LeRobot has it: a frame in the middle is found quickly


class Stream:
    """The frames of one episode, encoded as they come. shape: height, width, 3."""

    def __init__(self, shape: tuple[int, int, int], fps: float) -> None:
        height, width, _ = shape
        self._out = tempfile.TemporaryFile()
        self._encoder = subprocess.Popen(
            [_ffmpeg(), "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r",
             f"{fps:g}", "-i", "-", "-c:v", "libx264", "-preset", "veryfast", "-threads", "1", "-crf", str(QUALITY),
             "-g", str(KEY_EVERY), "-bf", "0", "-pix_fmt", pixels_of(shape), "-f", "h264", "-"], stdin=subprocess.PIPE,
            stdout=self._out, stderr=subprocess.PIPE, start_new_session=True)  # Ctrl-C is ours to hear

    def add(self, frame: np.ndarray) -> None:
        """One more frame, uint8."""
        try:
            self._encoder.stdin.write(np.ascontiguousarray(frame).data)
        except BrokenPipeError:
            self.content()  # which says why

    def content(self) -> bytes:
        """The stream; OSError if the encoder failed."""
        _, said = self._encoder.communicate()
        self._out.seek(0)
        content = self._out.read()
        self._out.close()
        if self._encoder.returncode:
            raise OSError(f"ffmpeg could not encode a video in {tempfile.gettempdir()}: {_said(said)}")
        return content

    def close(self) -> None:
        """Give it up."""
        self._encoder.kill()
        self._encoder.communicate()
        self._out.close()


def write_mp4(path: Path, streams: Sequence[bytes], fps: float) -> None:
    """Join streams of one size into an mp4 file with a frame every 1 / fps seconds. OSError if that fails."""
    when = f"setts=ts=N/({fps:g}*TB):duration=1/({fps:g}*TB)"  # to the last digit: LeRobot allows 0.1 ms
    done = subprocess.run([_ffmpeg(), "-loglevel", "error", "-y", "-f", "h264", "-framerate", f"{fps:g}", "-i", "-",
                           "-c", "copy", "-bsf:v", when, "-video_track_timescale", f"{fps * 512:g}", "-f", "mp4",
                           _named(path)], input=b"".join(streams), capture_output=True, start_new_session=True)
    if done.returncode:
        raise OSError(f"{path} cannot be written: {_said(done.stderr)}")


def read_mp4(path: Path, shape: tuple[int, int, int], count: int) -> np.ndarray:
    """The frames of an mp4 file, (count, height, width, 3) uint8. OSError for a damaged one, or one of other frames.

    No more than one frame too many is decoded, and nothing but the file is opened, whatever it names.
    """
    open_regular(path).close()
    done = subprocess.run([_ffmpeg(), "-loglevel", "error", "-xerror", "-threads", "1", "-protocol_whitelist", "file",
                           "-f", "mp4", "-i", _named(path), "-f", "rawvideo", "-pix_fmt", "rgb24", "-fps_mode",
                           "passthrough", "-frames:v", str(count + 1), "-fs", str((count + 1) * math.prod(shape)), "-"],
                          stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True)
    if done.returncode:
        raise OSError(f"{path} is damaged: {_said(done.stderr)}")
    frames, rest = divmod(len(done.stdout), math.prod(shape))
    if rest or frames != count:
        has = f"more than {count:,}" if frames > count else f"{frames:,}"
        raise OSError(f"{path} is damaged: it has {has} frames of {shape[1]} x {shape[0]} pixels instead of {count:,}")
    return np.frombuffer(done.stdout, np.uint8).reshape(-1, *shape)


def pixels_of(shape: tuple[int, int, int]) -> str:
    """How colours are stored: at half the resolution where the sides are even."""
    return "yuv444p" if shape[0] % 2 or shape[1] % 2 else "yuv420p"


def _named(path: Path) -> str:
    """A path as ffmpeg takes it, whose name may look like an option or an address."""
    return f"file:{path}"


def _said(text: bytes) -> str:
    """The complaint of ffmpeg in one line."""
    return printable(text.decode(errors="replace").strip()).rstrip(".") or "it says nothing"


def _ffmpeg() -> str:
    from imageio_ffmpeg import get_ffmpeg_exe

    return get_ffmpeg_exe()
