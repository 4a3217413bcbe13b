# mypy: ignore-errors

"""Loads reasoning-gym: names its data sets, shows their entries, and scores answers by the entry's own data set."""

import enum
import hashlib
import inspect


def load(setup):
    import reasoning_gym
    from reasoning_gym.factory import DATASETS

    return reasoning_gym, DATASETS


def answer(verifier, request):
    library, datasets = verifier
    if "dataset" not in request:
        return {"names": sorted(datasets), "version": getattr(library, "__version__", "")}
    dataset = library.create_dataset(request["dataset"], seed=request["seed"], size=request["size"])
    if "index" not in request:
        return {"entries": [shown(dataset[index]) for index in range(request["size"])], "source": source(type(dataset))}
    entry = dataset[request["index"]]
    given = entry["answer"] if request["stored"] else request["text"]
    return scored(dataset, given, entry)


def shown(entry):
    kept = entry["answer"]
    return {"question": str(entry["question"]), "texts": texts(kept), "type": type(kept).__name__, "missing": kept is None}


def texts(kept):
    """How an answer reads, in the forms in which a policy could give it."""
    if kept is None or isinstance(kept, str):
        return [] if kept is None else [kept]
    forms = [str(kept)]
    if isinstance(kept, (list, tuple)):
        forms = ["\n".join(map(str, kept)), *forms]
    if isinstance(kept, enum.Enum):
        forms = [str(kept.value), kept.name, *forms]
    return list(dict.fromkeys(forms))


def source(kind):
    return hashlib.sha256(open(inspect.getfile(kind), "rb").read()).hexdigest()


def scored(dataset, given, entry):
    try:
        said = {"reward": dataset.score_answer(given, entry)}
    except Exception as error:
        other = with_metadata(dataset, given, entry)
        if other is None:
            raise
        return {"malformed": f"{type(error).__name__}: {error}\n{other}"}
    if said["reward"] is not None and said["reward"] < 1 and (other := with_metadata(dataset, given, entry)):
        said["note"] = other
    return said


def with_metadata(dataset, given, entry):
    """Some data sets want the entry's metadata where the others want the entry."""
    try:
        reward = dataset.score_answer(given, entry["metadata"])
    except Exception:
        return None
    return f"interface: the same answer scores {reward} where the verifier is handed the entry's metadata in place of the entry" if reward >= 1 else None
