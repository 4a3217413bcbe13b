"""Three other ways to build it, written before the product's path was tuned, and frozen since.

naive   one POST, one row, four tasks for each trajectory
good    the conventional design done well: arrays, one task per hundred, SQLAlchemy Core, the forest asked once per hundred
plain   no audit at all: the plainest durable writer, FastAPI on SQLite
"""
