# mypy: ignore-errors

"""Loads an environment of the verifiers library, shows its rows, and scores single-turn answers by its rubric."""

import asyncio
import inspect
import itertools
import sys


def load(setup):
    sys.path.insert(0, setup["folder"])
    import verifiers

    if hasattr(verifiers, "load_environment"):  # before the stack of verifiers.v1
        return Rubric(verifiers.load_environment(setup["id"]))
    from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

    return Taskset(load_taskset(taskset_config_type(setup["id"])(id=setup["id"])))


def answer(environment, request):
    rows = environment.rows(request["size"])
    if "index" not in request:
        return {"entries": [environment.shown(row) for row in rows], "source": environment.source()}
    return asyncio.run(environment.scored(rows[request["index"]], request["text"]))


class Taskset:
    """Tasks of verifiers.v1, scored without a runtime on a trace of one turn."""

    def __init__(self, taskset):
        self.taskset = taskset

    def source(self):
        return f"{type(self.taskset).__module__}.{type(self.taskset).__qualname__}"

    def rows(self, size):
        return list(itertools.islice(iter(self.taskset), size))

    def shown(self, task):
        kept = next((value for name in ("answer", "solution", "reference", "ground_truth") if (value := getattr(task.data, name, None)) is not None), None)
        return entry(task.data.prompt_text, kept)

    async def scored(self, task, text):
        from verifiers.v1.graph import MessageNode
        from verifiers.v1.trace import Trace, TraceTask
        from verifiers.v1.types import AssistantMessage, UserMessage

        if task.NEEDS_CONTAINER:
            return {"malformed": "the task needs a container of its own: an answer in words cannot be scored"}
        asked = MessageNode(message=UserMessage(content=task.data.prompt_text))
        said = MessageNode(parent=0, message=AssistantMessage(content=text), sampled=True)
        recorded = TraceTask.model_construct(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
        trace = Trace.model_construct(task=recorded, agent=None, nodes=[asked, said], is_completed=True, ok=True)
        await task.score(trace, None)
        if not any(each is not None for each in trace.rewards.values()):
            return {"malformed": "no reward of this task can be had without a runtime"}
        return {"reward": trace.reward}


class Rubric:
    """An environment with a rubric, as before verifiers.v1."""

    def __init__(self, environment):
        self.environment = environment

    def source(self):
        return f"{type(self.environment).__module__}.{type(self.environment).__qualname__}"

    def rows(self, size):
        return dataset(self.environment, size)

    def shown(self, row):
        prompt = row.get("prompt", row.get("question", ""))
        text = prompt if isinstance(prompt, str) else "\n\n".join(str(message.get("content", "")) for message in prompt)
        return entry(text, row.get("answer"))

    async def scored(self, row, text):
        return {"reward": await scored(self.environment, row, text)}


def entry(question, kept):
    given = kept not in (None, "")
    return {"question": question, "texts": [str(kept)] if given else [], "type": type(kept).__name__, "missing": not given}


def dataset(environment, size):
    for name in ("get_eval_dataset", "get_dataset"):
        method = getattr(environment, name, None)
        if method is not None:
            found = method(n=size) if "n" in inspect.signature(method).parameters else method()
            if found is not None:
                return [dict(found[index]) for index in range(min(size, len(found)))]
    raise ValueError("the environment has no data set")


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
