"""The HTTP API: `uvicorn inspector.api:create_app --factory`."""

from inspector.api.app import create_app

__all__ = ["create_app"]
