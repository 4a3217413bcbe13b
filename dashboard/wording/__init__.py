"""Says in words what the API gives as values."""
