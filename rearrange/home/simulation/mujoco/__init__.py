"""The embedded simulator: a home as a MuJoCo model, contacts, suction, and the step of 1/30 s."""
