"""A network goes on from its own checkpoint, in another process too, and never from that of another fit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learner_cases import halves, network, some_bags, some_pu, train
from torch import nn

import kofn
from kofn.learners import ByLossAndError


def made(width: int = 4) -> nn.Module:
    return network(hidden=width)


def table() -> tuple[Any, Any, Any]:
    data = some_bags(12)
    of = data.bags.bag_of()
    return data.instances, data.proportions[of].numpy(), of.numpy()


def classifier(file: Path | None, *, random_state: Any = 0, **options: Any) -> Any:
    chosen: dict[str, Any] = {"epochs": 2, "checkpoint": file} | options
    if "module" not in options:
        chosen = {"dropout": 0.3, "hidden": (8,)} | chosen
    return kofn.LLPClassifier(kofn.Network(**chosen), random_state=random_state)


def parameters(model: Any) -> torch.Tensor:
    return nn.utils.parameters_to_vector(model.network_.parameters()).detach()


pytestmark = pytest.mark.filterwarnings("ignore:this fit is no better")  # after two epochs


def test_more_epochs_go_on(tmp_path: Path) -> None:
    classifier(tmp_path / "c").fit(*table())
    longer = classifier(tmp_path / "c", epochs=5).fit(*table())
    whole = classifier(None, epochs=5).fit(*table())
    assert longer.history_ == whole.history_
    assert torch.equal(parameters(longer), parameters(whole))


@pytest.mark.parametrize("what", ["instances", "labels", "bags", "weights"])
def test_other_data_of_the_same_shape_are_another_fit(tmp_path: Path, what: str) -> None:
    """As the folds of a search are: the second would silently be given the network of the first."""
    x, y, groups = table()
    classifier(tmp_path / "c").fit(x, y, groups)
    options = {}
    if what == "instances":
        x = x[::-1].copy()
    elif what == "labels":
        y = 1 - y
    elif what == "weights":
        options = {"bag_weight": groups + 1.0}
    else:
        y, groups = np.zeros_like(y), np.arange(len(y)) // 3
    with pytest.raises(ValueError, match=r"`checkpoint` must be of the same fit; .*data was [0-9a-f]{32} and is"):
        classifier(tmp_path / "c").fit(x, y, groups, **options)


def test_other_pu_data_are_another_fit(tmp_path: Path) -> None:
    data = some_pu()
    y = np.where(data.labeled.numpy(), 1, -1)
    model = kofn.PUClassifier(kofn.Network(epochs=1, checkpoint=tmp_path / "c"), mixture=0.5, random_state=0)
    model.fit(data.instances, y)
    with pytest.raises(ValueError, match=r"data was"):
        model.fit(data.instances + 1, y)


def test_other_validation_data_or_another_rule_are_another_fit(tmp_path: Path) -> None:
    """Which epoch was the best so far would be another's."""
    data, valid = halves(some_bags(14), 10)
    train(data, valid, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match=r"held_out was [0-9a-f]{32} and is"):
        train(data, replace(valid, labels=valid.bags.sizes - valid.labels), checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match=r"held_out was [0-9a-f]{32} and is None"):
        train(data, None, checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match=r"rule was ByLoss\(\) and is ByLossAndError\(\)"):
        train(replace(data, rule=ByLossAndError()), replace(valid, rule=ByLossAndError()), checkpoint=tmp_path / "c")


def test_a_network_of_your_own_with_other_weights_is_another_fit(tmp_path: Path) -> None:
    classifier(tmp_path / "c", module=network(seed=0)).fit(*table())
    assert len(classifier(tmp_path / "c", module=network(seed=0), epochs=3).fit(*table()).history_) == 3
    with pytest.raises(ValueError, match=r"`checkpoint` must be of the same fit; .*module was"):
        classifier(tmp_path / "c", module=network(seed=1)).fit(*table())


@pytest.mark.parametrize("wrap", [lambda f: f, partial], ids=["function", "partial"])
def test_a_factory_has_no_address(tmp_path: Path, wrap: Any) -> None:
    """In another process the same function lies elsewhere."""

    def again() -> Any:
        def factory() -> nn.Module:
            return network()

        return wrap(factory)

    one, other = again(), again()
    assert str(one) != str(other)
    classifier(tmp_path / "c", module=one).fit(*table())
    assert len(classifier(tmp_path / "c", module=other, epochs=3).fit(*table()).history_) == 3
    with pytest.raises(ValueError, match=r"module was .*factory.* and is .*made"):
        classifier(tmp_path / "c", module=made).fit(*table())


def test_noise_of_your_own_has_no_address(tmp_path: Path) -> None:
    x, _, groups = table()
    counts = np.bincount(groups, x[:, 0] > 0)[groups]
    for _ in range(2):
        law = lambda difference: -difference.abs()  # noqa: E731
        learner = kofn.Network(epochs=1, checkpoint=tmp_path / "c")
        kofn.LLPClassifier(learner, label="count", noise=law, random_state=0).fit(x, counts, groups)


def test_other_options_are_another_fit(tmp_path: Path) -> None:
    classifier(tmp_path / "c").fit(*table())
    with pytest.raises(ValueError, match=r"lr was 0\.001 and is 0\.01.*, seed was \d+ and is \d+"):
        classifier(tmp_path / "c", lr=0.01, random_state=1).fit(*table())
    classifier(tmp_path / "c", device="auto", patience=3, callback=lambda *_: None).fit(*table())  # of the machine


@pytest.mark.parametrize("state", [None, np.random.RandomState(0)], ids=str)
def test_a_checkpoint_needs_a_seed(tmp_path: Path, state: Any) -> None:
    with pytest.raises(ValueError, match="`random_state` must be an int with `checkpoint`"):
        classifier(tmp_path / "c", random_state=state).fit(*table())
    assert not (tmp_path / "c").exists()
