"""Colour images as H.264, depth as HEVC: one stream an episode, streams joined into one mp4 file without encoding
again. An image with one channel is depth, in numbers of 12 bits."""

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
_DEPTH_CODEC = ["-c:v", "libx265", "-preset", "veryfast", "-x265-params", "lossless=1:log-level=error:pools=none"]
KEY_EVERY = 2  # frames, as LeRobot has it: a frame in the middle is found quickly


class Stream:
    """The frames of one episode, encoded as they come. shape: height, width, 3 or 1."""

    def __init__(self, shape: tuple[int, int, int], fps: float) -> None:
        height, width, channels = shape
        codec = _DEPTH_CODEC if channels == 1 else ["-c:v", "libx264", "-preset", "veryfast", "-crf", str(QUALITY)]
        self._out = tempfile.TemporaryFile()
        self._encoder = subprocess.Popen(
            [_ffmpeg(), "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", _given(shape), "-s", f"{width}x{height}",
             "-r", f"{fps:g}", "-i", "-", *codec, "-threads", "1", "-g", str(KEY_EVERY), "-bf", "0", "-pix_fmt",
             pixels_of(shape), "-f", "hevc" if channels == 1 else "h264", "-"], stdin=subprocess.PIPE,
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


def write_mp4(path: Path, streams: Sequence[bytes], fps: float, depth: bool = False) -> None:
    """Join streams of one size into an mp4 file with a frame every 1 / fps seconds. OSError if that fails.

    Args:
        path: of the file.
        streams: of colours or of depth.
        fps: frames per second.
        depth: whether they are of depth.
    """
    when = f"setts=ts=N/({fps:g}*TB):duration=1/({fps:g}*TB)"  # to the last digit: LeRobot allows 0.1 ms
    kind = ["-f", "hevc" if depth else "h264"]
    tag = ["-tag:v", "hvc1"] if depth else []
    done = subprocess.run([_ffmpeg(), "-loglevel", "error", "-y", *kind, "-framerate", f"{fps:g}", "-i", "-", "-c",
                           "copy", *tag, "-bsf:v", when, "-video_track_timescale", f"{fps * 512:g}", "-f", "mp4",
                           _named(path)], input=b"".join(streams), capture_output=True, start_new_session=True)
    if done.returncode:
        raise OSError(f"{path} cannot be written: {_said(done.stderr)}")


def read_mp4(path: Path, shape: tuple[int, int, int], count: int) -> np.ndarray:
    """The frames of an mp4 file, (count, *shape), uint8 or of depth uint16. OSError for a damaged one, or one of other
    frames.

    No more than one frame too many is decoded, and nothing but the file is opened, whatever it names.
    """
    open_regular(path).close()
    size = math.prod(shape) * (2 if shape[2] == 1 else 1)
    done = subprocess.run([_ffmpeg(), "-loglevel", "error", "-xerror", "-threads", "1", "-protocol_whitelist", "file",
                           "-f", "mp4", "-i", _named(path), "-f", "rawvideo", "-pix_fmt", _given(shape), "-fps_mode",
                           "passthrough", "-frames:v", str(count + 1), "-fs", str((count + 1) * size), "-"],
                          stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True)
    if done.returncode:
        raise OSError(f"{path} is damaged: {_said(done.stderr)}")
    frames, rest = divmod(len(done.stdout), size)
    if rest or frames != count:
        has = f"more than {count:,}" if frames > count else f"{frames:,}"
        raise OSError(f"{path} is damaged: it has {has} frames of {shape[1]} x {shape[0]} pixels instead of {count:,}")
    return np.frombuffer(done.stdout, "<u2" if shape[2] == 1 else np.uint8).reshape(-1, *shape)


def pixels_of(shape: tuple[int, int, int]) -> str:
    """How pixels are stored; colours at half the resolution where the sides are even."""
    if shape[2] == 1:
        return "gray12le"
    return "yuv444p" if shape[0] % 2 or shape[1] % 2 else "yuv420p"


def _given(shape: tuple[int, int, int]) -> str:
    """How pixels come in and out."""
    return "gray12le" if shape[2] == 1 else "rgb24"


def _named(path: Path) -> str:
    """A path as ffmpeg takes it, whose name may look like an option or an address."""
    return f"file:{path}"


def _said(text: bytes) -> str:
    """The complaint of ffmpeg in one line."""
    return printable(text.decode(errors="replace").strip()).rstrip(".") or "it says nothing"


def _ffmpeg() -> str:
    from imageio_ffmpeg import get_ffmpeg_exe

    return get_ffmpeg_exe()
