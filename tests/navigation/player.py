"""Plays an episode of a navigation task to its end."""


def play(env, agent, episode):
    """The sum of a scripted agent's rewards in an episode, and the last info."""
    observation, _ = env.reset(options={"episode": episode})
    agent.begin()
    total, over = 0.0, False
    while not over:
        observation, reward, terminated, truncated, info = env.step(agent.act(observation))
        total, over = total + reward, terminated or truncated
    return total, info
