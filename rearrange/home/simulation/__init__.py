"""What a simulator offers, what all of them compute alike, and the embedded one: `mujoco`, and external `scenes`."""
