"""The front door: `rearrange train | eval | ...`. The top floor: it may import everything, and nothing imports it."""
