"""rearrange: train mobile-manipulation skills with VER and chain them to solve the Home Assistant Benchmark."""

__version__ = "0.1.0"
