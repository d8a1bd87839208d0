"""Tasks from scikit-learn's own data: no network, nothing held out is learnt from."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kofn.datasets import BundledTask, Labelled, load_breast_cancer_task, load_digits_task


def rows(data: Labelled) -> list[tuple[float, ...]]:
    return [tuple(row) for row in data.instances.tolist()]


def check(data: BundledTask[Any], n: int) -> None:
    assert len(data.train) + len(data.test) == n
    assert len(data.train) == round(0.75 * n)
    for part in (data.train, data.test):
        assert part.instances.dtype == torch.float32
        assert float(part.instances.min()) == 0
        assert float(part.instances.max()) == 1
        assert set(part.labels.tolist()) == {0, 1}
    assert not set(rows(data.train)) & set(rows(data.test))  # neither set of scikit-learn's has a row twice


def test_digits_llp() -> None:
    data = load_digits_task("llp")
    check(data, 1797)
    assert data.test_task is None
    assert set(data.task.bags.sizes.tolist()) == {16}
    assert len(data.task.bags) > 60
    assert torch.equal(data.task.counts, data.task.bags.sum(data.train.labels))


def test_digits_mil() -> None:
    data = load_digits_task("mil")
    check(data, 1797)
    assert data.test_task is not None
    for task, part, half in ((data.task, data.train, 150), (data.test_task, data.test, 100)):
        assert torch.equal(task.instance_labels, part.labels)
        assert task.bag_labels.bincount().tolist() == [half, half]
        assert torch.equal((task.bags.sum(part.labels) > 0).long(), task.bag_labels)
        assert int(task.bags.index.max()) < len(part)


def test_digits_pu() -> None:
    data = load_digits_task("pu")
    check(data, 182 + 174)
    assert int(data.train.labels[data.task.positive].sum()) == 50
    assert int(data.train.labels[data.task.unlabeled].sum()) == 70


def test_breast_cancer() -> None:
    llp, pu = load_breast_cancer_task("llp"), load_breast_cancer_task("pu")
    check(llp, 569)
    check(pu, 569)
    assert int(llp.train.labels.sum() + llp.test.labels.sum()) == 212  # malignant
    assert torch.equal(llp.task.counts, llp.task.bags.sum(llp.train.labels))
    assert int(pu.train.labels[pu.task.unlabeled].sum()) == 80


@pytest.mark.parametrize("seed", range(1, 6))
def test_every_seed_gives_a_task_and_another_one(seed: int) -> None:
    loaders: dict[Any, tuple[str, ...]] = {
        load_digits_task: ("llp", "mil", "pu"),
        load_breast_cancer_task: ("llp", "pu"),
    }
    for loader, words in loaders.items():
        for word in words:
            one, same, other = (loader(word, seed=k) for k in (seed, seed, 0))
            assert torch.equal(one.train.instances, same.train.instances)
            assert not torch.equal(one.train.instances, other.train.instances)


@pytest.mark.parametrize("loader", [load_digits_task, load_breast_cancer_task])
def test_other_words(loader: Any) -> None:
    with pytest.raises(ValueError, match="`task` must be one of 'llp'"):
        loader("regression")
