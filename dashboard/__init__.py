"""The pages where people see what was flagged and judge it; speaks HTTP with the API, and nothing else."""
