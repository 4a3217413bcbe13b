"""What a probe found out about the task, held against what was paid there."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.check import Cause, Declaration, Finding, Probed, Tier, Trajectory, check, envelope, example

OPEN = {
    "exploitable": "it pays for an exploit",
    "trivially_passable": "it pays for doing nothing",
    "flaky": "it pays the same work at one time and not at another",
}
# Of the probe it is evidence, of this trajectory only a suspicion: it weighs like a deed that is often harmless, which
# asks for a person's look, and excludes only together with something that this trajectory did.
SUSPICION = 0.5


@check(
    version=1,
    tier=Tier.ACTION,
    cause=Cause.VERIFIER_DEFECT,
    clean=[
        example("the task was probed and is sound", envelope(), probed=Probed(frozenset({"sound"}), "/v1/probes/1")),
        example("an unpaid episode used no exploit", envelope(reward=0.0), probed=Probed(frozenset({"exploitable"}), "/v1/probes/1")),
        example("an unscored episode was never verified", envelope(reward=None), probed=Probed(frozenset({"flaky"}), "/v1/probes/1")),
        example("a verifier that refuses too much pays for no wrong work", envelope(), probed=Probed(frozenset({"false_rejecting"}), "/v1/probes/1")),
    ],
    flagged=[
        example("paid where an exploit is paid too", envelope(), probed=Probed(frozenset({"exploitable", "weak_verifier"}), "/v1/probes/1")),
        example("paid where doing nothing is paid too", envelope(), probed=Probed(frozenset({"trivially_passable"}), "/v1/probes/1")),
        example("refused by a verifier that draws lots", envelope(reward=0.0), probed=Probed(frozenset({"flaky"}), "/v1/probes/1")),
    ],
)
def scored_by_a_verifier_that_a_probe_broke(trajectory: Trajectory, declaration: Declaration, probed: Probed) -> Iterator[Finding]:
    """A probe showed that the task's verifier pays for what is no solution, and this episode was scored by it.

    Its reward may be earned all the same; it proves nothing. The probe has what was submitted and what was paid.
    """
    outcomes = probed.outcomes
    if trajectory.reward is None:
        return
    paid = declaration.pays(trajectory.reward)
    for outcome in [outcome for outcome in OPEN if outcome in outcomes and (paid or outcome == "flaky")]:
        yield Finding(message=f"the task's verifier was probed: {OPEN[outcome]} ({outcome}, {probed.address})", score=SUSPICION)


@check(
    version=1,
    tier=Tier.ACTION,
    cause=Cause.ENVIRONMENT_DEFECT,
    clean=[
        example("the task was probed and is sound", envelope(), probed=Probed(frozenset({"sound"}), "/v1/probes/1")),
        example("the task could not be reproduced by the probe", envelope(), probed=Probed(frozenset({"not_reproduced"}), "/v1/probes/1")),
        example("an unscored episode of an unsolvable task", envelope(reward=None), probed=Probed(frozenset({"unsolvable"}), "/v1/probes/1")),
    ],
    flagged=[
        example("paid where the reference itself is refused", envelope(), probed=Probed(frozenset({"unsolvable"}), "/v1/probes/1")),
        example("refused where the reference is refused too", envelope(reward=0.0), probed=Probed(frozenset({"unsolvable"}), "/v1/probes/1")),
    ],
)
def scored_on_a_task_that_cannot_be_solved(trajectory: Trajectory, probed: Probed) -> Iterator[Finding]:
    """A probe showed that the task refuses its own reference: a failure there says nothing of the policy, and pay even less."""
    if "unsolvable" in probed.outcomes and trajectory.reward is not None:
        yield Finding(message=f"the task refuses its own reference (unsolvable, {probed.address})", score=SUSPICION)
