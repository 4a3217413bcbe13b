"""Everything that lasts: rows in Postgres and the lines themselves in segment files."""
