"""The verdict on single rows, whose true classes no bag tells."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kofn.estimators._judged import Judged
from kofn.estimators._verdict_words import gain_text, percent_text
from kofn.estimators._verdicts import FEWEST, Estimate, Verdict, auc_gain, mark_of_rows, mean_of, share_of

UNVERIFIED = (
    "Not verified: nothing here tells the true class of a row, and bags can be right while rows are not. Label a "
    "hundred rows at random, and give them with --truth (in Python, truth=...)."
)


def row_verdict(estimator: Any, judged: Judged, truth: NDArray[np.int64] | None, which: NDArray[np.bool_]) -> Verdict:
    """Whether rows are put in order and how probable their true classes are, against one probability for all.

    Args:
        estimator: fitted.
        judged: rows and scores.
        truth: (k,) true classes of the judged rows, 0 and 1 or 0 to C - 1, -1 where not known, or None.
        which: (k,) those to be looked at.
    """
    if truth is None:
        return Verdict("rows", "unknown", UNVERIFIED)
    partly = bool((truth[which] < 0).any())
    which = which & (truth >= 0)
    classes = np.asarray(truth, dtype=np.int64)[which]
    counts = np.bincount(classes, minlength=len(estimator.classes_))
    source, number = judged.source, len(classes)
    if np.sort(counts)[-2] < FEWEST:
        words = (
            f"Not known: of the {number:,} {source} rows with a true class too few are of another class than the rest."
        )
        return Verdict("rows", "unknown", words, {"number": number, "source": source})
    shares, logits = counts / number, torch.from_numpy(judged.logits[which])
    numbers: dict[str, Any] = {"number": number, "source": source, "majority": float(shares.max())}
    if logits.dim() == 1:
        logits = estimator._marginal(logits)
        log_p = torch.nn.functional.logsigmoid(torch.where(torch.from_numpy(classes == 1), logits, -logits)).numpy()
        right = float(((logits > 0).numpy() == (classes == 1)).mean())
        over = auc_gain(logits.numpy(), None, classes == 1)
        rank, chance = Estimate(0.5 + over.mean, 0.5 + over.low, 0.5 + over.high), 0.5
        numbers["auc"] = rank.to_json()
        said = f"AUC {rank.mean:.3f} ({rank.low:.3f} to {min(rank.high, 1.0):.3f}), accuracy {percent_text(right)}"
    else:
        log_p = logits.log_softmax(1).numpy()[np.arange(number), classes]
        right = float((logits.argmax(1).numpy() == classes).mean())
        rank, chance = share_of(right, number), float(shares.max())
        said = f"accuracy {percent_text(right)} ({percent_text(rank.low)} to {percent_text(rank.high)})"
    gain = mean_of(log_p - np.log(shares[classes]))
    mark = mark_of_rows(rank, chance, gain, source)
    of_them = " whose true class is known" if partly else ""
    in_order = "Partly" if rank.low > chance else "Not certain"
    first = {"good": "Yes", "doubtful": in_order, "bad": "No"}[mark]
    sentence = (
        f"{first}: {said} where the largest class has {percent_text(float(shares.max()))}, and "
        f"{gain_text(gain, 'one probability for all')} in log-likelihood a row, on {number:,} {source} "
        f"rows{of_them} (90\u00a0% intervals in brackets)."
    )
    return Verdict("rows", mark, sentence, numbers | {"accuracy": right, "gain": gain.to_json()})
