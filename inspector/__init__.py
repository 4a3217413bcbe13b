"""The quality-inspection service between RL environments and RL trainers."""

__version__ = "0.1.0"
