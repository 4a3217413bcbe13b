"""The product and its peers on the same trajectories in one run: `python -m benchmarks`."""
