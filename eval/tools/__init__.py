"""The robot's skills as tools of an agent, over the Model Context Protocol."""
