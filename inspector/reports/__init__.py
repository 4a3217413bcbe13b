"""What a probe said, in the forms that people and machines read."""
