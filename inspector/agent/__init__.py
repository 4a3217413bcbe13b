"""A terminal agent for tasks that have neither a reference nor a trainer: any model behind a chat endpoint, judged by what it leaves."""

from inspector.agent.endpoint import Endpoint, EndpointFailed
from inspector.agent.loop import Agent, Allowance, Ending, Episode
from inspector.agent.rollouts import Attempt, Rollouts, roll_out

__all__ = ["Agent", "Allowance", "Attempt", "Ending", "Endpoint", "EndpointFailed", "Episode", "Rollouts", "roll_out"]
