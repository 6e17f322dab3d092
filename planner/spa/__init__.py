"""Sense, plan, act (TP-SPA): the classical baseline, on what its own body and camera tell."""
