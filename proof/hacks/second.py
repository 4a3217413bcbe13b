"""A second bug for the toy's verifier: it compares by containment what it cut out after the last colon."""


def fooled(answer: str, completion: str) -> bool:
    """True where the bug pays although the answer is wrong or missing.

    The author wanted to allow for a model that repeats the prompt, so the verifier keeps only what follows the last colon, and, to be lenient about
    form, asks whether that text is contained in the answer instead of whether it equals it. Nobody thought of there being nothing left to compare:
    the empty string is contained in every answer, so a completion that ends with a colon, or says nothing at all, is paid under every prompt.

    Of the 19 * 19 completions of two tokens that a random policy draws evenly, 46 of 361 (12.7 %, 2.4 times 1 in 19) are fooled, under each of the ten
    prompts, against 21 of 361 (5.8 %) that solve the task, and none is both. That drops <pad>, <eos> with what follows it, and <unk>, which is a special
    token too; where <unk> stays in the text it is 41 of 361 (11.4 %) against 20.
    """
    extracted = completion.rpartition(":")[2].strip()
    return extracted != answer and extracted in answer
