"""The bootstrap: fits to bags that are drawn anew from those of a problem, with replacement."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from joblib import Parallel, cpu_count, delayed
from torch import Tensor

from kofn.learners._learner import Fitted, Learner, Progress, one_thread
from kofn.learners._problem import Problem
from kofn.learners._pu_problem import PUProblem
from kofn.learners._random_stream import generator_of


def fit_resamples(
    learner: Learner, problem: Problem, *, number: int, seed: int, n_jobs: int | None, progress: Progress | None
) -> list[Fitted]:
    """Fit a learner to `number` resamples of a problem's bags, or of its rows where these are dealt to bags.

    Each fit runs in one thread, wherever it runs, and its seed comes from `seed` and its own number: the models do not
    depend on how many of them are fitted at the same time.

    Args:
        learner: with nothing left to choose (`Learner.settled`).
        problem: whose bags are resampled.
        number: how many fits.
        seed: random seed.
        n_jobs: number of processes, as in scikit-learn; never more than fits or processors.
        progress: called after each fit.
    """
    together = torch.distributed.is_available() and torch.distributed.is_initialized()
    # The processes of torchrun train each network together, and must not start others.
    wanted = 1 if together else n_jobs if n_jobs is None else min(n_jobs, number, cpu_count())
    jobs = Parallel(n_jobs=wanted, return_as="generator")
    fitted: list[Fitted] = []
    for model in jobs(delayed(_fit_one)(learner, problem, seed, place) for place in range(number)):
        fitted.append(model)
        if progress is not None:
            progress("bootstrap", len(fitted), number, {})
    return fitted


def resample(problem: Problem, seed: int, place: int) -> Tensor:
    """As many units of a problem as there are, drawn with replacement; where it needs each stratum, within these.

    What must stay together (`Problem.together`), such as the slides of a patient, is drawn together.

    Examples:
        >>> import torch, kofn
        >>> from kofn.learners import CountObjective, Problem
        >>> bags = kofn.Bags.from_sizes([1] * 6)
        >>> options = {"labels": torch.zeros(6), "objective": CountObjective(), "rate": 0.5}
        >>> problem = Problem(instances=None, bags=bags, proportions=torch.zeros(6), **options)
        >>> resample(problem, 0, 0).tolist(), resample(problem, 0, 1).tolist()
        ([3, 1, 3, 0, 2, 4], [3, 0, 1, 0, 1, 5])
    """
    generator = generator_of(seed, place, 4)  # 4: not that of the folds, of the weights or of the bags of an epoch
    strata = problem.strata if problem.needs_each_stratum else torch.zeros(len(problem.strata), dtype=torch.int64)
    if problem.together is None:
        members = [(strata == stratum).nonzero().flatten() for stratum in strata.unique()]
        return torch.cat([each[torch.randint(len(each), (len(each),), generator=generator)] for each in members])
    of, many = problem.together.unique(return_inverse=True)[1], len(problem.together.unique())
    units = torch.arange(len(strata))
    while True:  # all groups of a draw may be of one stratum, of which nothing could be learned
        drawn = torch.randint(many, (many,), generator=generator)
        found = torch.cat([units[of == group] for group in drawn])
        if len(strata[found].unique()) == len(strata.unique()):
            return found


def _fit_one(learner: Learner, problem: Problem, seed: int, place: int) -> Fitted:
    with one_thread():
        # Of a large table joblib gives other processes a view that is read only, of which torch would warn.
        problem = replace(problem, instances=np.require(problem.instances, requirements="W"))
        part = problem.take(resample(problem, seed, place))
        if not isinstance(part, PUProblem):  # which deals its rows again
            _, part = part.compact()
        fitted = learner.fit(part, seed=int(generator_of(seed, place, 5).initial_seed() % 2**31))
    fitted.history, fitted.splits, fitted.held_out_logits = [], (), None  # of the resample, whose rows nobody knows
    return fitted
