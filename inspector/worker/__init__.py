"""The Celery side: tasks that claim, inspect and close; nothing travels in a message."""
