"""Keeps pytest from taking the verifiers of example folders for tests of the product."""

collect_ignore = ["lint"]
