"""Trajectories written by us, with what the checks must say of them: the input of `make demo`."""
