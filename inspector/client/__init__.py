"""What a trainer imports: the client, its async twin, and plain calls of the service. Base install only."""

from inspector.client.advice import Admission, Advice, Decisions, RollbackAdvice
from inspector.client.apply import apply
from inspector.client.client import AsyncClient, Client
from inspector.client.http import Api, ApiError
from inspector.client.options import BadOption
from inspector.client.stats import Stats

__all__ = ["Admission", "Advice", "Api", "ApiError", "AsyncClient", "BadOption", "Client", "Decisions", "RollbackAdvice", "Stats", "apply"]
