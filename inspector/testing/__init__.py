"""What the author of a check tests it with: the suite that every check must pass, and episodes to build tests from."""

from inspector.check import envelope, example
from inspector.testing.conformance import Nonconforming, assert_conforms
from inspector.testing.episodes import odd_trajectories, trajectory

__all__ = ["Nonconforming", "assert_conforms", "envelope", "example", "odd_trajectories", "trajectory"]
