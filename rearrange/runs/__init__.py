"""Directories of runs: what a run writes, which are finished, processes of their own."""
