"""The Fetch: its kinematics and model, its motors, its head camera."""
