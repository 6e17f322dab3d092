"""Evaluation: success with intervals, videos, throughput."""
