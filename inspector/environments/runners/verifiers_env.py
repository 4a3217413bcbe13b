# mypy: ignore-errors

"""Loads an environment of the verifiers library, shows its rows, and scores single-turn answers by its rubric."""

import asyncio
import inspect


def load(setup):
    import verifiers

    return verifiers.load_environment(setup["id"])


def answer(environment, request):
    rows = dataset(environment, request["size"])
    if "index" not in request:
        return {"entries": [shown(row) for row in rows], "source": repr(type(environment)), "kind": type(environment).__name__}
    row = rows[request["index"]]
    return {"reward": asyncio.run(scored(environment, row, request["text"]))}


def dataset(environment, size):
    for name in ("get_eval_dataset", "get_dataset"):
        method = getattr(environment, name, None)
        if method is not None:
            found = method(n=size) if "n" in inspect.signature(method).parameters else method()
            if found is not None:
                return [dict(found[index]) for index in range(min(size, len(found)))]
    raise ValueError("the environment has no data set")


def shown(row):
    prompt = row.get("prompt", row.get("question", ""))
    text = prompt if isinstance(prompt, str) else "\n\n".join(str(message.get("content", "")) for message in prompt)
    kept = row.get("answer")
    return {"question": text, "texts": [str(kept)] if kept not in (None, "") else [], "type": type(kept).__name__, "missing": kept in (None, "")}


async def scored(environment, row, text):
    completion = [{"role": "assistant", "content": text}]
    state = {
        **row,
        "input": row,
        "prompt": row.get("prompt"),
        "completion": completion,
        "answer": row.get("answer", ""),
        "info": row.get("info", {}),
        "task": row.get("task", "default"),
        "responses": [],
        "turn": 1,
        "trajectory": [],
        "timing": {"generation_ms": 0.0, "scoring_ms": 0.0, "total_ms": 0.0, "start_time": 0.0},
        "metrics": {},
        "reward": None,
    }
    given = {"prompt": state["prompt"], "completion": completion, "answer": state["answer"], "state": state, "task": state["task"], "info": state["info"]}
    score = environment.rubric.score_rollout
    parameters = inspect.signature(score).parameters
    said = score(**{name: value for name, value in {**given, "score_sem": Free(), "semaphore": Free(), "example_id": 0}.items() if name in parameters})
    said = await said if inspect.isawaitable(said) else said
    reward = said.get("reward") if isinstance(said, dict) else getattr(said, "reward", None)
    return state["reward"] if reward is None else reward


class Free:
    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None
