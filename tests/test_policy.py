"""The default policy, line by line, and the laws that any policy keeps."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector import policy
from inspector.combine import Beta
from inspector.task import UNDECLARED, Declaration, RewardDeclaration
from inspector.verdict import Action, Cause, Finding, Outcome, Selected, Span, Tier, Verdict

DEFAULT = policy.load()
UNIT = Declaration(reward=RewardDeclaration(min=0.0, max=1.0, paid_at=1.0))
CLEAN = bytes([Outcome.CLEAN, Outcome.FLAGGED])
PROVEN = Beta(400, 4)


def found(tier=Tier.ACTION, cause=Cause.POLICY_EXPLOIT, check="builtin/a", **fields):
    return Finding(message="quotes the agent", tier=tier, cause=cause, check=check, version=1, **fields)


def judge(*findings, outcomes=CLEAN, checks=(), declaration=UNIT, reward=1.0, honest_mean=0.5, **fields):
    return DEFAULT.judge(findings, outcomes, checks, declaration=declaration, reward=reward, honest_mean=honest_mean, **fields)


# --- the default table -----------------------------------------------------------------------------------------------

Q, F, A = Verdict.QUARANTINE, Verdict.FLAG, Verdict.ACCEPT
EXCLUDE, KEEP, OVERRIDE = Action.EXCLUDE, Action.KEEP, Action.OVERRIDE_REWARD
GOLDEN = [
    # tier, cause, grave, verdict, action, retry, probability: of one finding of score 1
    (Tier.EVIDENCE, Cause.POLICY_EXPLOIT, False, Q, OVERRIDE, False, 0.9525),
    (Tier.EVIDENCE, Cause.VERIFIER_DEFECT, False, Q, EXCLUDE, False, 0.9525),
    (Tier.EVIDENCE, Cause.ENVIRONMENT_DEFECT, False, Q, EXCLUDE, False, 0.9525),
    (Tier.EVIDENCE, Cause.INFRASTRUCTURE, False, Q, EXCLUDE, True, 0.9525),
    (Tier.EVIDENCE, Cause.RECORD_DEFECT, True, Q, EXCLUDE, False, 0.9525),
    (Tier.EVIDENCE, Cause.RECORD_DEFECT, False, F, KEEP, False, 0.05),
    (Tier.EVIDENCE, Cause.ANOMALY, False, A, KEEP, False, 0.24),
    (Tier.ACTION, Cause.POLICY_EXPLOIT, False, Q, EXCLUDE, False, 0.81),
    (Tier.ACTION, Cause.VERIFIER_DEFECT, False, Q, EXCLUDE, False, 0.81),
    (Tier.ACTION, Cause.ENVIRONMENT_DEFECT, False, Q, EXCLUDE, False, 0.81),
    (Tier.ACTION, Cause.INFRASTRUCTURE, False, Q, EXCLUDE, True, 0.81),
    (Tier.ACTION, Cause.RECORD_DEFECT, False, Q, EXCLUDE, False, 0.81),
    (Tier.ACTION, Cause.ANOMALY, False, A, KEEP, False, 0.24),
    *((Tier.TEXT, cause, False, A, KEEP, False, 0.24) for cause in Cause),
]


@pytest.mark.parametrize(("tier", "cause", "grave", "verdict", "action", "retry", "probability"), GOLDEN)
def test_the_default_table(tier, cause, grave, verdict, action, retry, probability):
    judgement = judge(found(tier, cause, grave=grave))
    assert (judgement.verdict, judgement.action, judgement.retry, judgement.probability) == (verdict, action, retry, probability)
    assert judgement.cause == (None if verdict is A else cause)
    assert judgement.deciding == (() if verdict is A else ("builtin/a@1",))
    assert (judgement.reward_override is not None) == (action is OVERRIDE)
    assert not judgement.confirmed_exploit


def test_the_golden_table_names_every_tier_and_cause():
    assert {(tier, cause) for tier, cause, *_ in GOLDEN} == set(product(Tier, Cause))


@pytest.mark.parametrize("cause", Cause)
def test_a_grave_finding_is_grave_only_as_a_record_defect_in_evidence(cause):
    plain, grave = judge(found(Tier.EVIDENCE, cause)), judge(found(Tier.EVIDENCE, cause, grave=True))
    assert (plain == grave) == (cause is not Cause.RECORD_DEFECT)


def test_a_clean_trajectory_is_accepted_at_the_prior():
    judgement = judge(outcomes=bytes([Outcome.CLEAN, Outcome.NOT_ASSESSED, Outcome.INCONCLUSIVE]))
    assert judgement == policy.Judgement(verdict=A, probability=0.05, action=KEEP)


@pytest.mark.parametrize(
    ("score", "verdict", "action"),
    [(0.0, A, KEEP), (0.3, A, KEEP), (0.35, F, KEEP), (0.95, F, KEEP), (0.99, Q, EXCLUDE), (7.0, Q, EXCLUDE), (float("nan"), Q, EXCLUDE)],
)
def test_the_score_of_an_action_counts(score, verdict, action):
    judgement = judge(found(score=score))
    assert (judgement.verdict, judgement.action) == (verdict, action)


def test_a_veto_does_not_ask_for_the_score():
    assert judge(found(Tier.EVIDENCE, Cause.VERIFIER_DEFECT, score=0.1)).verdict is Q


# --- what never quarantines ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tier", "cause"), [(Tier.TEXT, Cause.POLICY_EXPLOIT), (Tier.ACTION, Cause.ANOMALY), (Tier.EVIDENCE, Cause.ANOMALY)])
def test_text_and_anomalies_alone_never_quarantine(tier, cause):
    many = [found(tier, cause, check=f"builtin/{at}") for at in range(50)]
    judgement = judge(*many, precision=lambda *_: PROVEN)
    assert judgement.probability > 0.99
    assert (judgement.verdict, judgement.action) == (F, KEEP)


unusual = st.builds(
    found,
    st.sampled_from(Tier),
    st.just(Cause.ANOMALY),
    check=st.sampled_from(["builtin/a", "builtin/b", "acme/c"]),
    score=st.floats(0, 1),
    p_value=st.none() | st.floats(0, 1),
    grave=st.booleans(),
)


@given(st.lists(unusual, max_size=30), st.sampled_from([None, 0.0, 1.0]), st.sampled_from([Beta(1, 99), Beta(2, 8), PROVEN]))
def test_anomalies_alone_are_looked_at_and_nothing_is_held_back(findings, reward, precision):
    judgement = judge(*findings, reward=reward, precision=lambda *_: precision)
    assert judgement.verdict <= F
    assert (judgement.action, judgement.reward_override, judgement.confirmed_exploit) == (KEEP, None, False)
    if any(finding.p_value is not None for finding in findings):
        assert (judgement.verdict, judgement.cause) == (F, Cause.ANOMALY)


def test_an_anomaly_of_a_check_that_answers_for_its_errors_is_flagged_and_another_is_only_told():
    told, tested = found(cause=Cause.ANOMALY), found(cause=Cause.ANOMALY, check="builtin/b", score=0.999, p_value=0.001)
    assert judge(told).verdict is A
    assert (judge(tested).verdict, judge(tested).deciding) == (F, ("builtin/b@1",))
    assert judge(tested).probability == judge(found(cause=Cause.ANOMALY, check="builtin/b", score=0.999)).probability


def test_an_anomaly_supports_a_suspicion_and_does_not_take_its_name():
    suspicion, tested = found(score=0.95), found(cause=Cause.ANOMALY, check="builtin/b", p_value=0.001)
    assert (judge(suspicion).verdict, judge(suspicion, tested).verdict) == (F, Q)
    weaker = judge(found(score=0.4), tested)
    assert (weaker.verdict, weaker.cause, weaker.deciding) == (F, Cause.POLICY_EXPLOIT, ("builtin/a@1", "builtin/b@1"))


def test_text_supports_what_an_action_raised():
    action, text = found(score=0.9), [found(Tier.TEXT, check=f"builtin/t{at}") for at in range(2)]
    assert judge(action).verdict is F
    assert judge(action, *text).verdict is Q
    assert judge(found(score=0.0), *[found(Tier.TEXT, check=f"builtin/t{at}") for at in range(50)]).verdict is F


def test_a_check_counts_once_however_often_it_found_something():
    assert judge(*[found(score=0.5)] * 20) == judge(found(score=0.5))


# --- reasoning -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", [{"from_reasoning": True}, {"spans": (Span(step=1, field="reasoning_content", end=5),)}])
@pytest.mark.parametrize("tier", Tier)
def test_what_rests_on_reasoning_flags_and_says_nothing(mark, tier):
    judgement = judge(found(tier, Cause.POLICY_EXPLOIT, score=1.0, **mark), precision=lambda *_: PROVEN)
    assert (judgement.verdict, judgement.action) == (F, KEEP)
    assert judgement.cause is None
    assert (judgement.reasons, judgement.deciding) == ((), ())


def test_reasoning_never_tips_the_scale_for_a_trainer():
    shown, thought = found(score=0.9), found(Tier.TEXT, Cause.INFRASTRUCTURE, check="builtin/thought", from_reasoning=True)
    judgement = judge(shown, *[thought], precision=lambda *_: Beta(8, 2))
    assert judgement.probability > 0.9
    assert (judgement.verdict, judgement.action, judgement.cause) == (F, KEEP, Cause.POLICY_EXPLOIT)
    assert "thought" not in repr(judgement)


def test_exportable_leaves_out_only_reasoning():
    plain = found(spans=(Span(step=0, field="message"),))
    assert policy.exportable([plain, found(from_reasoning=True), found(spans=(Span(step=0, field="reasoning_content"),))]) == (plain,)


# --- outcomes --------------------------------------------------------------------------------------------------------


def chosen(*late):
    return [Selected(check=f"builtin/{at}", version=1, parameters="", late=is_late) for at, is_late in enumerate(late)]


@pytest.mark.parametrize(
    ("outcomes", "late", "verdict"),
    [
        ([1, 0], [], Verdict.PENDING),
        ([1, 0], [False, True], A),
        ([0, 1], [False, True], Verdict.PENDING),
        ([1], [False, False], Verdict.PENDING),  # a missing entry is pending
        ([1], [False, True], A),
        ([], [], A),
        ([], [True], A),
    ],
)
def test_a_pending_fast_check_holds_and_a_late_one_does_not(outcomes, late, verdict):
    judgement = judge(outcomes=bytes(outcomes), checks=chosen(*late))
    assert judgement.verdict is verdict
    assert judgement.action is (Action.HOLD if verdict is Verdict.PENDING else KEEP)


def test_a_fast_check_that_did_not_run_yet_holds_even_what_is_proved():
    assert judge(found(Tier.EVIDENCE), outcomes=b"\x00").action is Action.HOLD


def test_outcomes_of_more_checks_than_were_chosen_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        judge(outcomes=b"\x01\x01", checks=chosen(False))


@pytest.mark.parametrize(
    ("outcomes", "late", "verdict"),
    [([5, 1], [False, False], A), ([5, 4], [False, False], A), ([5, 5], [False, False], F), ([5, 0], [False, True], F), ([1, 5], [False, True], A)],
)
def test_an_error_flags_only_where_every_fast_check_died(outcomes, late, verdict):
    judgement = judge(outcomes=bytes(outcomes), checks=chosen(*late))
    assert (judgement.verdict, judgement.action) == (verdict, KEEP)
    assert judgement.reasons == (("every fast check ended in an error",) if verdict is F else ())


# --- actions ---------------------------------------------------------------------------------------------------------

EXPLOIT = found(Tier.EVIDENCE)


def test_a_proved_exploit_loses_its_reward():
    judgement = judge(EXPLOIT)
    assert (judgement.action, judgement.reward_override) == (OVERRIDE, 0.0)
    assert judgement.reasons == ("builtin/a@1: policy exploit, by evidence", "the reward 1 becomes 0, so that the exploit loses against honest work")


@pytest.mark.parametrize(("precision", "action"), [(Beta(8, 2), EXCLUDE), (Beta(95, 5), EXCLUDE), (PROVEN, OVERRIDE)])
def test_an_action_proves_an_exploit_only_with_a_precise_check(precision, action):
    assert judge(found(), precision=lambda *_: precision).action is action


def test_a_precise_check_that_is_unsure_of_this_row_proves_nothing():
    infrastructure = found(Tier.EVIDENCE, Cause.INFRASTRUCTURE, check="builtin/b")
    judgement = judge(found(score=0.5), infrastructure, precision=lambda *_: PROVEN)
    assert (judgement.action, judgement.cause, judgement.retry) == (EXCLUDE, Cause.INFRASTRUCTURE, True)


@pytest.mark.parametrize("cause", [cause for cause in Cause if cause is not Cause.POLICY_EXPLOIT])
def test_breaking_something_else_does_not_save_a_proved_exploit(cause):
    judgement = judge(found(Tier.EVIDENCE, cause, check="builtin/0", grave=True), EXPLOIT)
    assert (judgement.action, judgement.cause, judgement.retry, judgement.deciding) == (OVERRIDE, Cause.POLICY_EXPLOIT, False, ("builtin/a@1",))


def test_infrastructure_explains_a_strange_verifier():
    broken, strange = found(Tier.EVIDENCE, Cause.INFRASTRUCTURE, check="builtin/z"), found(Tier.EVIDENCE, Cause.VERIFIER_DEFECT)
    judgement = judge(strange, broken)
    assert (judgement.cause, judgement.retry, judgement.deciding) == (Cause.INFRASTRUCTURE, True, ("builtin/z@1", "builtin/a@1"))


@pytest.mark.parametrize(
    ("declaration", "reward", "honest_mean", "confirmed"),
    [
        (UNDECLARED, 1.0, 0.5, True),
        (UNDECLARED, 0.0, 0.5, False),  # the verifier did not fall for it
        (UNIT, 1.0, 0.01, True),
        (UNIT, 1.0, None, True),
        (UNIT, 0.0, None, False),
        (UNIT, None, 0.5, False),  # not scored: nothing to override
        (UNDECLARED, None, None, False),
    ],
)
def test_an_exploit_that_cannot_be_made_to_lose_is_excluded(declaration, reward, honest_mean, confirmed):
    judgement = judge(EXPLOIT, declaration=declaration, reward=reward, honest_mean=honest_mean)
    assert (judgement.verdict, judgement.action, judgement.reward_override) == (Q, EXCLUDE, None)
    assert (judgement.cause, judgement.confirmed_exploit) == (Cause.POLICY_EXPLOIT, confirmed)


def test_the_better_of_two_proving_checks_sets_the_recall():
    recalls = {"builtin/a": 0.2, "builtin/b": 0.9}
    both = [EXPLOIT, found(Tier.EVIDENCE, check="builtin/b")]
    assert judge(EXPLOIT, recall=lambda check, version: recalls[check]).action is EXCLUDE
    assert judge(*both, recall=lambda check, version: recalls[check]).action is OVERRIDE


def test_the_fewest_heaviest_checks_answer_for_an_exclusion():
    judgement = judge(found(Tier.TEXT, check="builtin/t"), found(check="builtin/weak", score=0.2), found(check="builtin/strong"))
    assert judgement.deciding == ("builtin/strong@1",)


def test_reasons_do_not_repeat_what_a_finding_quotes():
    assert "quotes" not in repr(judge(EXPLOIT, found(), found(Tier.EVIDENCE, Cause.RECORD_DEFECT)).reasons)


@pytest.mark.parametrize(("total", "count", "mean"), [(0.0, 0, 0.0), (10.0, 20, 0.25), (900.0, 1000, 900 / 1020)])
def test_an_honest_mean_of_few_episodes_is_shrunk_to_the_minimum(total, count, mean):
    assert DEFAULT.honest_mean(total, count, UNIT) == pytest.approx(mean)
    assert DEFAULT.honest_mean(total, count, UNDECLARED) is None


# --- laws ------------------------------------------------------------------------------------------------------------

names = st.sampled_from(["builtin/a", "builtin/b", "acme/c"])
findings = st.lists(
    st.builds(
        Finding,
        message=st.just("m"),
        score=st.floats(0, 1),
        grave=st.booleans(),
        from_reasoning=st.booleans(),
        check=names,
        version=st.just(1),
        tier=st.sampled_from(Tier),
        cause=st.sampled_from(Cause),
    ),
    max_size=6,
)
shares = st.floats(0, 1)
precisions = st.sampled_from([None, lambda *_: PROVEN, lambda *_: Beta(1, 1)])
declarations = st.builds(
    lambda low, width, below: Declaration(reward=RewardDeclaration(min=low, max=low + width, penalty_min=low - below)),
    st.floats(-10, 10),
    st.floats(0, 10),
    st.floats(0, 10),
) | st.just(UNDECLARED)
rewards = st.none() | st.floats(-20, 20)


@given(findings, findings, precisions)
def test_more_findings_never_make_a_verdict_better(some, more, precision):
    before, after = judge(*some, precision=precision), judge(*some, *more, precision=precision)
    assert after.verdict >= before.verdict
    assert after.probability >= before.probability


@given(st.lists(st.sampled_from(Outcome), min_size=1), findings)
def test_more_errors_never_make_a_verdict_better(outcomes, some):
    without = bytes(Outcome.CLEAN if o is Outcome.ERROR else o for o in outcomes)
    assert judge(*some, outcomes=bytes(outcomes)).verdict >= judge(*some, outcomes=without).verdict


@given(findings, precisions, st.randoms())
def test_the_order_of_findings_does_not_matter(some, precision, random):
    shuffled = random.sample(some, len(some))
    assert judge(*shuffled, precision=precision) == judge(*some, precision=precision)


@given(findings, precisions, declarations, rewards, st.none() | st.floats(-20, 20), shares)
def test_an_override_is_in_range_lets_the_exploit_lose_and_never_invents_a_reward(some, precision, declaration, reward, mean, recall):
    judgement = judge(*some, declaration=declaration, reward=reward, honest_mean=mean, recall=lambda *_: recall, precision=precision)
    assert (judgement.action is OVERRIDE) == (judgement.reward_override is not None)
    if judgement.reward_override is None:
        return
    low, high, penalty = declaration.reward.min, declaration.reward.max, declaration.reward.penalty_min
    honest = low if mean is None else mean
    assert reward is not None
    assert penalty <= judgement.reward_override <= min(high, reward)
    assert (1 - recall) * max(high, reward) + recall * judgement.reward_override <= honest + 1e-9 * 40
    assert judgement.cause is Cause.POLICY_EXPLOIT


@given(findings, precisions, rewards)
def test_a_row_is_kept_exactly_where_it_is_not_quarantined(some, precision, reward):
    judgement = judge(*some, reward=reward, precision=precision)
    assert (judgement.action is KEEP) == (judgement.verdict < Q)
    assert bool(judgement.deciding) or judgement.verdict < Q


@given(findings, findings, precisions, rewards)
def test_what_a_trainer_sees_does_not_depend_on_reasoning(some, more, precision, reward):
    thoughts = [policy.msgspec.structs.replace(f, from_reasoning=True, check="secret/thought") for f in more]
    shown = [f for f in some if not f.from_reasoning]
    without, with_thoughts = (judge(*each, reward=reward, precision=precision) for each in (shown, [*shown, *thoughts]))
    exported = ("action", "cause", "reward_override", "retry", "reasons", "deciding", "confirmed_exploit")
    assert [getattr(without, name) for name in exported] == [getattr(with_thoughts, name) for name in exported]
    assert "thought" not in repr(with_thoughts)


# --- the file --------------------------------------------------------------------------------------------------------


def test_a_policy_has_a_name_and_a_digest_of_its_values(tmp_path):
    text = (policy.policy_file.resources.files("inspector") / "policies" / "default.toml").read_text()
    (tmp_path / "same.toml").write_text("# another comment\n" + text)
    (tmp_path / "other.toml").write_text(text.replace("false_flag = 3", "false_flag = 4"))
    assert DEFAULT.name == "default@3"
    assert policy.load(tmp_path / "same.toml").digest == DEFAULT.digest == policy.load("").digest
    assert policy.load(str(tmp_path / "other.toml")).digest != DEFAULT.digest


def test_the_default_policy_says_what_the_design_says():
    assert (DEFAULT.prior, DEFAULT.thresholds.quarantine, DEFAULT.thresholds.flag, DEFAULT.thresholds.proof) == (0.05, 0.8, 0.3, 0.95)
    believed = DEFAULT.prior_precision
    assert (believed.evidence, believed.action, believed.text, believed.anomaly) == (Beta(19, 1), Beta(8, 2), Beta(2, 8), Beta(2, 8))
    assert DEFAULT.precision("x", 1, Tier.EVIDENCE, Cause.ANOMALY) == Beta(2, 8)


@pytest.mark.parametrize(
    ("written", "instead", "complaint"),
    [
        ("false_flag = 3", 'false_flag = "low"', r"\$\.costs\.false_flag.*'low'"),
        ("false_flag = 3", "false_flag = nan", r"\$\.costs\.false_flag.*'nan'"),
        ("false_flag = 3", "false_flag = 0", r"\$\.costs\.false_flag.*'0'"),
        ("false_flag = 3", "false_flag = 29", r"\$\.costs\.false_flag: 29 is above costs\.false_quarantine 28"),
        ("false_flag = 3", "false_flag = 0.3", r"\$\.prior: 0\.05 is not below 0\.0410959"),
        ("proof = 0.95", "proof = 1.5", r"\$\.proof.*'1\.5'"),
        ("prior = 0.05", "prior = 1.5", r"\$\.prior.*'1\.5'"),
        ("prior = 0.05", "", "missing required field `prior`"),
        ("shrinkage = 20", "shrinkag = 20", "unknown field `shrinkag`"),
        ("text = [2, 8]", "text = [2, -8]", r"\$\.precision\.text\[1\].*'-8'"),
        ("text = [2, 8]", "text = [2]", r"\$\.precision\.text.*\[2\]"),
        ('cause = "anomaly"', 'cause = "anomalous"', r"\$\.table\[6\]\.cause.*'anomalous'"),
        ('cause = "infrastructure", verdict = "quarantine"', 'cause = "verifier_defect", verdict = "quarantine"', "cause infrastructure has no line"),
        ('cause = "infrastructure", verdict = "quarantine"', 'cause = "verifier_defect", verdict = "quarantine"', r"\$\.table\[2\].*has a line already"),
        (
            'verdict = "flag", action = "keep"',
            'verdict = "flag", action = "override_reward"',
            r"\$\.table\[5\]: action override_reward does not go with verdict flag",
        ),
        ('"anomaly", verdict = "by_probability"', '"anomaly", verdict = "quarantine"', "nor an anomaly quarantines alone"),
        (
            '"anomaly", verdict = "by_probability", action = "exclude"',
            '"anomaly", verdict = "by_probability", action = "override_reward"',
            "only a proved policy_exploit",
        ),
        ('retry = ["infrastructure"]', 'retry = ["weather"]', r"\$\.retry\[0\].*'weather'"),
        ("version = 3", "version = 0", r"\$\.version.*'0'"),
        ('id = "default"', 'id = "de fault"', r"\$\.id.*'de fault'"),
        ('id = "default"', "id = ", "line 3"),
    ],
)
def test_a_bad_policy_names_the_file_the_path_and_the_value(tmp_path, written, instead, complaint):
    text = (policy.policy_file.resources.files("inspector") / "policies" / "default.toml").read_text()
    assert written in text
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(written, instead, 1))
    with pytest.raises(policy.BadPolicy, match=complaint) as caught:
        policy.load(file)
    assert str(caught.value).startswith(f"{file}: ")


def test_a_policy_may_believe_something_else_of_one_check(tmp_path):
    own = own_policy(tmp_path, '[checks."acme/sure"]\nprecision = [30, 1]\n[checks."acme/seen"]\nrecall = [1, 3]')
    assert [own.precision(check, 1, Tier.ACTION, Cause.POLICY_EXPLOIT) for check in ("acme/sure", "acme/seen", "x")] == [Beta(30, 1), Beta(8, 2), Beta(8, 2)]
    assert own.precision("acme/sure", 1, Tier.TEXT, Cause.ANOMALY) == Beta(30, 1)
    assert [own.recall(check, 1) for check in ("acme/sure", "acme/seen", "x")] == [0.9, 0.25, 0.9]
    assert own.digest != DEFAULT.digest


def own_policy(folder, more):
    text = (policy.policy_file.resources.files("inspector") / "policies" / "default.toml").read_text()
    (folder / "mine.toml").write_text(f"{text}\n{more}\n")
    return policy.load(folder / "mine.toml")


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ('[checks."acme/a"]\nprecision = [3, -1]', r"""\$\.checks\."acme/a"\.precision\[1\].*'-1'"""),
        ('[checks."acme/a"]\nrecall = [3]', r"""\$\.checks\."acme/a"\.recall.*\[3\]"""),
        ('[checks."acme/a"]\nprecisoin = [3, 1]', r"""unknown field `precisoin`.*\$\.checks\."acme/a\""""),
        ('[checks]\n"acme/a" = 3', r"""got `int`: '3'.*\$\.checks\."acme/a\""""),
    ],
)
def test_a_wrong_belief_names_the_check_and_the_value(tmp_path, more, complaint):
    with pytest.raises(policy.BadPolicy, match=complaint):
        own_policy(tmp_path, more)


@given(st.floats(1e-3, 1e3), st.floats(1e-3, 1e3), st.floats(0, 1))
def test_a_threshold_is_where_acting_costs_as_much_as_not_acting(mistaken, miss, p):
    threshold = policy.policy_file.Costs(miss=miss, false_quarantine=mistaken, false_flag=mistaken).threshold(mistaken)
    assert (1 - threshold) * mistaken == pytest.approx(threshold * miss)
    if abs(p - threshold) > 1e-9:
        assert (p > threshold) == ((1 - p) * mistaken < p * miss)


def test_a_miss_that_costs_ten_times_a_lost_trajectory_quarantines_from_nine_percent_on():
    costs = policy.policy_file.Costs(miss=10, false_quarantine=1, false_flag=1 / 3)
    assert costs.threshold(costs.false_quarantine) == pytest.approx(1 / 11)


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_a_policy_that_cannot_be_read_is_named(tmp_path, content):
    file = tmp_path / "mine.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(policy.BadPolicy, match=r"mine\.toml"):
        policy.load(file)
