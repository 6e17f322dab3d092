"""Hydra configuration: choices and numbers only."""
