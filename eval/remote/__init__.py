"""Policies that act from another process or machine, over a websocket."""
