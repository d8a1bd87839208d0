"""An estimator goes on from its own checkpoint, in another process too, and never from that of other data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from training_cases import network, some_bags, some_pu

import kofn


def made(width: int = 4) -> nn.Module:
    return network(hidden=width)


def table() -> tuple[Any, Any, Any]:
    data = some_bags(12)
    shares = data.bags.mean((data.instances[:, 0] > 0).double())
    of = torch.arange(12).repeat_interleave(data.bags.sizes)
    return data.instances.numpy(), shares[of].numpy(), of.numpy()


def classifier(folder: Path, **options: Any) -> Any:
    return kofn.LLPClassifier(**({"epochs": 2, "random_state": 0, "dropout": 0.3, "checkpoint": folder} | options))  # type: ignore[arg-type]


def parameters(model: Any) -> torch.Tensor:
    return nn.utils.parameters_to_vector(model.network_.parameters()).detach()


def test_more_epochs_go_on(tmp_path: Path) -> None:
    classifier(tmp_path).fit(*table())
    longer = classifier(tmp_path, epochs=5).fit(*table())
    whole = classifier(tmp_path, epochs=5, checkpoint=None).fit(*table())
    assert longer.history_ == whole.history_
    assert torch.equal(parameters(longer), parameters(whole))


@pytest.mark.parametrize("what", ["instances", "labels", "bags"])
def test_other_data_of_the_same_shape_are_another_fit(tmp_path: Path, what: str) -> None:
    """As the folds of a search are: the second would silently be given the network of the first."""
    x, y, groups = table()
    classifier(tmp_path).fit(x, y, groups)
    if what == "instances":
        x = x[::-1].copy()
    elif what == "labels":
        y = 1 - y
    else:
        y, groups = np.zeros_like(y), np.arange(len(y)) // 3
    with pytest.raises(ValueError, match=r"`checkpoint` must be of the same fit; .*data was [0-9a-f]{32} and is"):
        classifier(tmp_path).fit(x, y, groups)


def test_other_pu_data_are_another_fit(tmp_path: Path) -> None:
    data = some_pu()
    y = np.where(data.labeled.numpy(), 1, -1)
    model = kofn.PUClassifier(mixture=0.5, epochs=1, random_state=0, checkpoint=tmp_path)
    model.fit(data.instances.numpy(), y)
    with pytest.raises(ValueError, match=r"data was"):
        model.fit(data.instances.numpy() + 1, y)


@pytest.mark.parametrize("wrap", [lambda f: f, partial], ids=["function", "partial"])
def test_a_factory_has_no_address(tmp_path: Path, wrap: Any) -> None:
    """In another process the same function lies elsewhere."""

    def again() -> Any:
        def factory() -> nn.Module:
            return network()

        return wrap(factory)

    one, other = again(), again()
    assert str(one) != str(other)
    classifier(tmp_path, module=one).fit(*table())
    assert len(classifier(tmp_path, module=other, epochs=3).fit(*table()).history_) == 3
    with pytest.raises(ValueError, match=r"module was .*factory.* and is .*made"):
        classifier(tmp_path, module=made).fit(*table())


def test_other_options_are_another_fit(tmp_path: Path) -> None:
    classifier(tmp_path).fit(*table())
    with pytest.raises(ValueError, match=r"lr was 0\.001 and is 0\.01.*, seed was \d+ and is \d+"):
        classifier(tmp_path, lr=0.01, random_state=1).fit(*table())
