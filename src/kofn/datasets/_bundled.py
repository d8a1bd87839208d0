"""Small tasks from the data that scikit-learn brings: no file, no network, seconds to train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, overload

import numpy as np
import torch
from torch import Tensor

from kofn import _require
from kofn.datasets._labelled import Labelled
from kofn.datasets._task_makers import make_llp_bags, make_mil_bags, make_pu_split
from kofn.datasets._tasks import LLPTask, MILTask, PUTask

Task = TypeVar("Task", LLPTask, MILTask, PUTask)

TRAIN_FRACTION = 0.75


@dataclass(frozen=True, eq=False)
class BundledTask(Generic[Task]):
    """A task, its rows, and other rows for testing.

    Attributes:
        train: rows of the task; its positions point here. Labels are the truth, for scoring only.
        task: bags and labels to train on.
        test: held-out rows with labels; none of them is in `train`.
        test_task: bags of held-out rows, made like those of the task, for multiple instance tasks; else None.
    """

    train: Labelled
    task: Task
    test: Labelled
    test_task: Task | None = None


@overload
def load_digits_task(task: Literal["llp"] = "llp", *, seed: int = 0) -> BundledTask[LLPTask]: ...
@overload
def load_digits_task(task: Literal["mil"], *, seed: int = 0) -> BundledTask[MILTask]: ...
@overload
def load_digits_task(task: Literal["pu"], *, seed: int = 0) -> BundledTask[PUTask]: ...
def load_digits_task(task: Literal["llp", "mil", "pu"] = "llp", *, seed: int = 0) -> BundledTask[Any]:
    """A task on scikit-learn's 1797 digits of 8 x 8 pixels; a quarter of them is held out.

    - "llp": digits 5 to 9 are positive, 0 to 4 negative; bags of 16 with uniform proportions, as many as fit.
    - "mil": digit 9 is positive; 300 bags and 200 held-out bags of round(N(10, 2)) instances.
    - "pu": digit 1 is positive, 8 negative, the others left out; 50 labelled positives, 140 unlabelled rows of which
      70 are positive. Of all 45 pairs, this is the one that logistic regression with every label tells apart worst.

    Args:
        task: "llp", "mil" or "pu".
        seed: random seed.

    Returns:
        Instances are float32 (n, 64) from 0 to 1.

    Raises:
        ValueError: an unknown task.

    Examples:
        >>> from kofn.datasets import load_digits_task
        >>> data = load_digits_task("mil")
        >>> len(data.task.bags), int(data.task.bag_labels.sum()), len(data.test)
        (300, 150, 449)
    """
    _require.option("task", task, ("llp", "mil", "pu"))
    bundle = _require.package("sklearn.datasets", extra="train").load_digits()
    pixels, digit = torch.from_numpy(bundle.data / 16).float(), torch.from_numpy(bundle.target.astype(np.int64))
    names = tuple(bundle.feature_names)
    generator = torch.Generator().manual_seed(seed)

    def split(rows: Tensor, positive: Tensor, classes: tuple[str, str]) -> tuple[Labelled, Labelled]:
        data = Labelled(pixels[rows], positive[rows].long(), names, classes)
        return data.split(TRAIN_FRACTION, generator=generator)

    everything = torch.ones_like(digit, dtype=torch.bool)
    if task == "llp":
        train, test = split(everything, digit >= 5, ("0-4", "5-9"))
        return BundledTask(train, make_llp_bags(train.labels, bag_size=16, generator=generator), test)
    if task == "pu":
        train, test = split((digit == 1) | (digit == 8), digit == 1, ("8", "1"))
        pu = make_pu_split(train.labels, positives=50, unlabeled=140, mixture=0.5, generator=generator)
        return BundledTask(train, pu, test)
    train, test = split(everything, digit == 9, ("0-8", "9"))
    learn, score = (
        make_mil_bags(part.labels, target=1, bags=bags, mean_size=10, sd_size=2, generator=generator)
        for part, bags in ((train, 300), (test, 200))
    )
    return BundledTask(train, learn, test, score)


@overload
def load_breast_cancer_task(task: Literal["llp"] = "llp", *, seed: int = 0) -> BundledTask[LLPTask]: ...
@overload
def load_breast_cancer_task(task: Literal["pu"], *, seed: int = 0) -> BundledTask[PUTask]: ...
def load_breast_cancer_task(task: Literal["llp", "pu"] = "llp", *, seed: int = 0) -> BundledTask[Any]:
    """A task on scikit-learn's 569 rows about breast tumours, malignant being positive; a quarter is held out.

    - "llp": bags of 8 with uniform proportions, as many as fit.
    - "pu": 40 labelled positives, 160 unlabelled rows of which 80 are positive.

    Args:
        task: "llp" or "pu".
        seed: random seed.

    Returns:
        Instances are float32 (n, 30): each column is scaled to 0 to 1 by its range in the training rows,
        and held-out values beyond that range are set to its end.

    Raises:
        ValueError: an unknown task.

    Examples:
        >>> from kofn.datasets import load_breast_cancer_task
        >>> data = load_breast_cancer_task("pu")
        >>> len(data.task.positive), len(data.task.unlabeled), len(data.test)
        (40, 160, 142)
    """
    _require.option("task", task, ("llp", "pu"))
    bundle = _require.package("sklearn.datasets", extra="train").load_breast_cancer()
    generator = torch.Generator().manual_seed(seed)
    malignant = torch.from_numpy((bundle.target == 0).astype(np.int64))
    features = tuple(str(name) for name in bundle.feature_names)
    raw = Labelled(torch.from_numpy(bundle.data), malignant, features, ("benign", "malignant"))
    train, test = _scale(*raw.split(TRAIN_FRACTION, generator=generator))
    if task == "llp":
        return BundledTask(train, make_llp_bags(train.labels, bag_size=8, generator=generator), test)
    pu = make_pu_split(train.labels, positives=40, unlabeled=160, mixture=0.5, generator=generator)
    return BundledTask(train, pu, test)


def _scale(train: Labelled, test: Labelled) -> tuple[Labelled, Labelled]:
    low, high = train.instances.amin(0), train.instances.amax(0)
    scaled = (((part.instances - low) / (high - low)).clamp(0, 1).float() for part in (train, test))
    one, two = (
        Labelled(x, part.labels, part.features, part.classes) for x, part in zip(scaled, (train, test), strict=True)
    )
    return one, two
