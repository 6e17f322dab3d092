"""The robot's own map of the floor, from depth images, and routes through it."""
