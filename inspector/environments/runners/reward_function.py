# mypy: ignore-errors

"""Loads a reward function in TRL's signature, and calls it for one prompt and one completion."""

import asyncio
import importlib
import inspect
import sys


def load(setup):
    sys.path.insert(0, setup["folder"])
    function = importlib.import_module(setup["module"])
    for name in setup["function"].split("."):
        function = getattr(function, name)
    return function


def answer(function, request):
    message = [{"role": "assistant", "content": request["text"]}]
    completion = message if isinstance(request["prompt"], list) else request["text"]
    given = {name: [value] for name, value in request["columns"].items()}
    given |= {"prompts": [request["prompt"]], "completions": [completion], "completion_ids": [list(request["text"].encode())]}
    extra = {"trainer_state": None, "log_extra": nothing, "log_metric": nothing}
    said = function(**taken(function, given | extra))
    said = asyncio.run(said) if inspect.iscoroutine(said) else said
    if not isinstance(said, (list, tuple)) and not hasattr(said, "tolist"):
        return {"malformed": f"the function returned {type(said).__name__}, not a list of rewards"}
    rewards = said.tolist() if hasattr(said, "tolist") else list(said)
    if len(rewards) != 1:
        return {"malformed": f"the function returned {len(rewards)} rewards for one completion"}
    return {"reward": plain(rewards[0])}


def plain(reward):
    return reward.item() if hasattr(reward, "item") else reward


def nothing(*arguments, **named):
    return None


def taken(function, given):
    """What the function has parameters for; all of it where it takes anything."""
    parameters = inspect.signature(function).parameters
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return given
    return {name: value for name, value in given.items() if name in parameters}
