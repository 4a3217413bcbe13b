"""The harness and the policy do not speak the same language: no tool called, answers imagined, one action for ever.

None of these proves an exploit or spoils a reward by itself: they are told, and hold nothing back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from inspector.actions import actions
from inspector.check import Cause, Finding, Inconclusive, Span, Tier, Trajectory, check, envelope, example
from inspector.trajectory import Source, Step, text_of

_TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]


def _episode(*steps: dict[str, Any], tools: list[dict[str, Any]] | None = None, **overrides: Any) -> dict[str, Any]:
    document = {"schema_version": "ATIF-v1.8", "agent": {"name": "terminus", "version": "2.0", "tool_definitions": tools}}
    numbered = [{"step_id": at, **step} for at, step in enumerate(steps, start=1)]
    return {**envelope(**overrides), "trajectory": {**document, "steps": numbered}}


def _asked(message: str = "Repair the script.") -> dict[str, Any]:
    return {"source": "user", "message": message}


def _said(message: str, *commands: str, back: str = "") -> dict[str, Any]:
    calls = [{"tool_call_id": f"c{at}", "function_name": "bash", "arguments": {"command": command}} for at, command in enumerate(commands)]
    results = [{"source_call_id": call["tool_call_id"], "content": back} for call in calls]
    return {"source": "agent", "message": message, **({"tool_calls": calls, "observation": {"results": results}} if calls else {})}


_WRITTEN_CALL = re.compile(
    r"<tool_call>|<function_call>|<\|tool_calls?|<function=|<invoke\b|\[TOOL_CALLS\]|\"(?:name|function)\"\s*:\s*\"[\w.-]+\"\s*,\s*\"(?:arguments|parameters)\"\s*:"
)


@check(
    version=1,
    tier=Tier.ACTION,
    cause=Cause.INFRASTRUCTURE,
    clean=[
        example("one call is enough to show that tools work", _episode(_asked(), _said("", "ls"), _said("Done."), tools=_TOOLS)),
        example("no tools are offered, none are called", _episode(_asked(), _said("Forty-two."))),
        example("the question needs no tool, and none was tried", _episode(_asked("What is six times seven?"), _said("Forty-two."), tools=_TOOLS)),
        example("it acts by fenced blocks, and is answered", _episode(_asked(), _said("```bash\nls\n```"), _asked("a.py"), _said("Done."), tools=_TOOLS)),
    ],
    flagged=[
        example(
            "its calls stand in its messages, where no harness reads them",
            _episode(_asked(), _said('<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>'), tools=_TOOLS),
        ),
        example(
            "turn after turn it only talks",
            _episode(_asked(), _said("I look."), _asked("Go on."), _said("I repair it."), _asked("And?"), _said("Done."), tools=_TOOLS),
        ),
    ],
)
def no_tool_was_called(trajectory: Trajectory, *, turns: Annotated[int, msgspec.Meta(ge=2)] = 3) -> Iterator[Finding]:
    """The agent was offered tools and never called one, although it tried to or went on for several turns.

    Mostly the harness cannot read the calls of this model: a chat template or a parser does not fit. `turns` is how many
    turns of mere talk are taken for that; an answer at once may be all that the task needed.
    """
    agent = trajectory.document.agent
    if not (agent and agent.tool_definitions) or any(step.tool_calls for step in trajectory.steps) or actions(trajectory).done:
        return
    own = [(at, step) for at, step in trajectory.own_steps if step.source is Source.AGENT]
    for at, step in own:
        if written := _WRITTEN_CALL.search(text := text_of(step.message)):
            span = Span(step=at, field="message", start=written.start(), end=written.end(), quote=text[written.start() : written.end()])
            yield Finding(message="no tool was called, but a call stands in the text of a message", score=0.8, spans=(span,))
            return
    if len(own) >= turns:
        yield Finding(message=f"{len(agent.tool_definitions)} tools were offered and none was called in {len(own)} turns", score=0.5)


_MARKS = ("<tool_", "<function_result", "<observation", "[TOOL_RESULTS]", "<|", "Observation:")  # one of them, before the slower look
_IMAGINED = re.compile(
    r"^[ \t]*(?:<(?:tool_response|function_results?|tool_output|tool_result|observation)>|\[TOOL_RESULTS\]|<\|(?:tool_response|observation)\|?>)"
    r"|^[ \t]*Action(?: Input)?:[^\n]*\n+(?:Action Input:[^\n]*\n+)?Observation:[ \t]*\S",
    re.MULTILINE,
)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@check(
    version=1,
    tier=Tier.TEXT,
    cause=Cause.ANOMALY,
    clean=[
        example(
            "what came back stands in the observation", _episode(_asked(), _said("I look.", "ls", back="<tool_response>a.py</tool_response>"), _said("Done."))
        ),
        example(
            "it explains the form inside a block of code", _episode(_asked(), _said("Servers answer so:\n```\n<tool_response>\n{}\n</tool_response>\n```\n"))
        ),
        example("it waits for an answer as it should", _episode(_asked(), _said("Action: search\nAction Input: x\nObservation:"))),
        example("it speaks of an observation in a sentence", _episode(_asked(), _said("My observation: the port is misspelt."))),
    ],
    flagged=[
        example(
            "it writes the answer of the tool itself", _episode(_asked(), _said("I look.\n<tool_response>\na.py  b.py\n</tool_response>\nBoth are there."))
        ),
        example(
            "it goes on where the harness should have answered",
            _episode(_asked(), _said("Action: search\nAction Input: x\nObservation: three hits\nFinal Answer: 3")),
        ),
    ],
)
def tool_output_imagined(trajectory: Trajectory) -> Iterator[Finding]:
    """The agent's own message holds what only a tool may say: it imagined the answer and went on with it.

    Often the harness did not stop the model where it should have; a policy that is paid for it learns to make things up.
    """
    for at, step in trajectory.own_steps:
        text = text_of(step.message) if step.source is Source.AGENT else ""
        if not ("<" in text or "Observation:" in text or "[TOOL_RESULTS]" in text) or not any(mark in text for mark in _MARKS):
            continue
        fences = [block.span() for block in _FENCE.finditer(text)] if "```" in text else []
        for imagined in _IMAGINED.finditer(text):
            if not any(start <= imagined.start() < end for start, end in fences):
                span = Span(step=at, field="message", start=imagined.start(), end=imagined.end(), quote=imagined[0])
                yield Finding(message="the agent's own message holds the answer of a tool", score=0.8, spans=(span,))
                return


@check(
    version=1,
    tier=Tier.ACTION,
    cause=Cause.ANOMALY,
    clean=[
        example("it waits, and each time something else comes back", _episode(_asked(), *[_said("", "status", back=f"{n} %") for n in range(0, 100, 10)])),
        example(
            "the same three times, then something else", _episode(_asked(), *[_said("", "pytest", back="1 failed")] * 6, _said("", "cat app.py", back="x = 1"))
        ),
        example("four times is not yet for ever", _episode(_asked(), *[_said("", "pytest", back="1 failed")] * 4)),
    ],
    flagged=[
        example("it runs the same failing command until it is stopped", _episode(_asked(), *[_said("Again.", "pytest", back="1 failed")] * 8, reward=0.0)),
        example(
            "after good work it looks at the same file for ever", _episode(_asked(), _said("", "ls", back="a"), *[_said("", "cat a", back="x")] * 6, _said("…"))
        ),
    ],
)
def same_action_to_the_end(trajectory: Trajectory, *, times: Annotated[int, msgspec.Meta(ge=3)] = 5) -> Iterator[Finding]:
    """The episode ends in one action, repeated with the same answer each time.

    The policy is stuck, and most of its tokens are a loop. `times` is how many equal actions in a row are one.
    """
    steps = trajectory.steps
    acting = (at for at in reversed(range(len(steps))) if (step := steps[at]).tool_calls and step.source is Source.AGENT and not step.is_copied_context)
    final = next(acting, None)
    if final is None:
        return
    last = _deed(steps[final])
    first, same = final, 1
    for at in acting:
        if _deed(steps[at]) != last:
            break
        first, same = at, same + 1
    if same >= times:
        if last[1] == ((),):
            raise Inconclusive(f"the last {same} actions are the same, but what came back was not recorded")
        yield Finding(message=f"the last {same} actions are the same, and so are their answers (steps {first} to {final})", score=0.9)


def _deed(step: Step) -> tuple[object, ...]:
    calls = tuple((call.function_name, repr(call.arguments)) for call in step.tool_calls or ())
    seen = tuple(text_of(result.content) for result in (step.observation.results if step.observation else ()))
    return calls, (seen,)
