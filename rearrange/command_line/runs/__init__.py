"""Runs: their directories, the processes that they are, and where they are started: here, in joblib's processes, on
SLURM.
"""
