"""The publishers' files, where $KOFN_DATA has them: the numbers that their documents and ours state."""

from __future__ import annotations

import pytest
import torch

from kofn.datasets import (
    _adult,
    _cifar10,
    _colon,
    _magic,
    _mnist,
    load_adult,
    load_cifar10,
    load_colon,
    load_magic,
    load_mnist,
)


@pytest.mark.data(_adult.SOURCE.folder)
def test_adult() -> None:
    train, test = load_adult(download=False)
    assert train.labels.bincount().tolist() == [32561 - 7841, 7841]
    assert test.labels.bincount().tolist() == [16281 - 3846, 3846]
    assert len(train.features) == 108
    widths = {
        column: sum(feature.startswith(f"{column}=") for feature in train.features)
        for column, categorical in _adult.COLUMNS.items()
        if categorical
    }
    assert list(widths.values()) == [9, 16, 7, 15, 6, 5, 2, 42]
    unknown = [feature.endswith("=?") for feature in train.features]
    assert [int((part.instances[:, unknown].sum(1) > 0).sum()) for part in (train, test)] == [2399, 1221]
    numeric = [name for name in train.features if "=" not in name]
    assert numeric == ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    first = dict(zip(train.features, train.instances[0].tolist(), strict=True))
    assert (first["age"], first["fnlwgt"], first["workclass=State-gov"], first["sex=Female"]) == (39, 77516, 1, 0)


@pytest.mark.data(_magic.SOURCE.folder)
def test_magic() -> None:
    data = load_magic(download=False)
    assert data.instances.shape == (19020, 10)
    assert data.labels.bincount().tolist() == [6688, 12332]
    assert bool(torch.isfinite(data.instances).all())
    train, test = data.split(0.8, generator=torch.Generator().manual_seed(0))
    assert (len(train), len(test)) == (15216, 3804)


@pytest.mark.data(_mnist.SOURCE.folder)
def test_mnist() -> None:
    train, test = load_mnist(download=False)
    assert train.instances.shape == (60000, 1, 28, 28)
    assert train.labels.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert test.labels.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert float(train.instances.double().mean() / 255) == pytest.approx(0.1307, abs=5e-5)  # as everyone quotes


@pytest.mark.data(_cifar10.SOURCE.folder)
def test_cifar10() -> None:
    train, test = load_cifar10(download=False)
    assert train.instances.shape == (50000, 3, 32, 32)
    assert train.labels.bincount().tolist() == [5000] * 10
    assert test.labels.bincount().tolist() == [1000] * 10
    means = [float(train.instances[:, channel].float().mean() / 255) for channel in range(3)]
    assert means == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)  # red, green, blue, as everyone quotes


@pytest.mark.data(_colon.SOURCE.folder)
def test_colon() -> None:
    colon = load_colon(download=False)
    assert colon.instances.shape == (22444, 3, 27, 27)
    assert colon.instances.is_contiguous()
    assert colon.labels.bincount().tolist() == [7722, 5712, 6971, 2039]
    assert colon.bag_labels.bincount().tolist() == [49, 51]
    assert colon.bags.names == [f"img{number}" for number in range(1, 101)]
    assert int(colon.bags.sizes.min()) == 1
    lonely = int(colon.bags.sizes.argmin())
    assert colon.bags.names[lonely] == "img76"  # the one that the paper leaves out in all likelihood
    in_paper = [name != "img76" for name in colon.bags.names]
    assert colon.bag_labels[in_paper].bincount().tolist() == [48, 51]
    # Nuclei are stained dark: the middle of a patch is darker than its rim, on average.
    middle = colon.instances[:, :, 10:17, 10:17].float().mean()
    rim = colon.instances[:, :, 0].float().mean()
    assert float(rim - middle) > 20
