"""The routes, one file a noun."""
