"""Depth images and colour pictures without GL: a rasteriser for one CPU core."""
