"""Any torch module on any loss: its options, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from kofn import _require
from kofn._io.mapped import blocks, mapping_of, take
from kofn.bags import Bags
from kofn.learners._attention import AttentionMIL
from kofn.learners._design import Design
from kofn.learners._instance_network import (
    Module,
    make_network,
    network_logits,
    require_memory,
    require_scores,
    require_widths,
    with_attention,
)
from kofn.learners._learner import Fitted, Instances, Learner, Logits, Progress
from kofn.learners._loop import CHUNK, Loop
from kofn.learners._mapped_features import MappedFeatures
from kofn.learners._perceptron import TableLinear, ends_in_bias, ends_in_logit, start_at_rate
from kofn.learners._problem import Problem
from kofn.learners._random_stream import RandomStream
from kofn.learners._schedules import SCHEDULES
from kofn.learners._splits import Split, a_split_of

WIDE = 512  # features of a table beyond which they are not all made at once
LARGEST_FACTOR = 1e6  # of a learning rate or a penalty, whose products float32 must hold

HIDDEN = (128,)  # widths of the layers of a network that is not given


class Network(Learner):
    """Any torch module that gives an instance its logit, or one of each class, by Adam; held-out bags choose the epoch.

    Args:
        module: "mlp", a `torch.nn.Module` (copied), or a factory of one, called with the
            number of features (of images: of channels) if it takes an argument. For several classes it gives a
            logit for each of them.
        hidden: widths of the hidden layers of "mlp".
        dropout: dropout probability of "mlp".
        epochs: maximum number of epochs.
        patience: number of epochs without a better validation loss after which training ends; None trains all epochs.
            With "one-cycle" only epochs after the learning rate has stopped rising are counted.
        validation_fraction: fraction of the bags to hold out, on which the best epoch is chosen. With 0, all bags are
            trained on and the weights of the last epoch are taken.
        lr: learning rate.
        schedule: learning rate schedule: "constant"; "cosine", down to 0, so that the last batches leave less noise in
            the weights; or "one-cycle", up from 0 and down, for large bags, whose loss is steep at first, and for
            attention pooling.
        weight_decay: weight decay of Adam.
        l1: L1 penalty on the weights (of matrices and kernels, not of biases).
        optimizer: from parameters to an optimizer, in place of Adam with `lr` and `weight_decay`.
        start: probability that a new network gives every instance, if it ends in a `kofn.learners.Logit` or, of two
            classes, an `nn.Linear(..., 1)`: "rate", that of the bags' labels; a number, of two classes; or
            None for one half, as torch initialises it.
        standardise: whether the columns of a table are standardised.
        batch_size: number of bags in a batch; by default a sixteenth of them, at most 64.
        max_instances: maximum number of instances in a batch, in place of `batch_size`.
        accumulate: number of batches whose gradients are added up for a step, if a step of `batch_size` bags is too
            large for memory.
        device: "cpu", "cuda", or "auto" for a GPU if there is one. There, instances that take at most half of its free
            memory are copied to it once; of more, each batch is gathered on the host and copied.
        precision: precision of the network: "float32" or "bfloat16" (autocast); the loss is computed in float64 inside.
        checkpoint: file to write after each epoch, from which the same fit, if interrupted, continues bit for bit.
        callback: called after each epoch with the network and the epoch's entry in the history.

    Started by ``torchrun``, all processes train one network: bags are shared out, and gradients are those of the whole
    step, however uneven the shares are.

    Examples:
        >>> import numpy as np, kofn
        >>> rng = np.random.default_rng(0)
        >>> X, groups = rng.normal(size=(400, 2)), np.repeat(np.arange(100), 4)
        >>> y = (X[:, 0] > 0).reshape(100, 4).mean(1).repeat(4)
        >>> network = kofn.Network(hidden=(16,), lr=0.01, epochs=30)
        >>> model = kofn.LLPClassifier(network, random_state=0).fit(X, y, groups=groups)
        >>> bool((model.predict(X) == (X[:, 0] > 0)).mean() > 0.95)
        True
    """

    def __init__(
        self,
        module: Module = "mlp",
        *,
        hidden: Sequence[int] = HIDDEN,
        dropout: float = 0.0,
        epochs: int = 200,
        patience: int | None = 15,
        validation_fraction: float = 0.1,
        lr: float = 1e-3,
        schedule: Literal["constant", "cosine", "one-cycle"] = "constant",
        weight_decay: float = 0.0,
        l1: float = 0.0,
        optimizer: Callable[[Any], Optimizer] | None = None,
        start: float | Literal["rate"] | None = "rate",
        standardise: bool = True,
        batch_size: int | None = None,
        max_instances: int | None = None,
        accumulate: int = 1,
        device: Literal["cpu", "cuda", "auto"] = "cpu",
        precision: Literal["float32", "bfloat16"] = "float32",
        checkpoint: str | Path | None = None,
        callback: Callable[[nn.Module, Mapping[str, float]], None] | None = None,
    ) -> None:
        self.module = module
        self.hidden = hidden
        self.dropout = dropout
        self.epochs = epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.lr = lr
        self.schedule = schedule
        self.weight_decay = weight_decay
        self.l1 = l1
        self.optimizer = optimizer
        self.start = start
        self.standardise = standardise
        self.batch_size = batch_size
        self.max_instances = max_instances
        self.accumulate = accumulate
        self.device = device
        self.precision = precision
        self.checkpoint = checkpoint
        self.callback = callback

    def splits(self, problem: Problem, seed: int) -> list[Split]:
        return a_split_of(problem, self.validation_fraction, seed)

    def fit(self, problem: Problem, *, seed: int, progress: Progress | None = None) -> FittedNetwork:
        self.require_options()
        split = next(iter(self.splits(problem, seed)), None)
        train = problem if split is None else problem.take(split[0])
        design = self._design(train)
        embeds = self._embeds(design)
        features = _features(problem.instances, design, embeds=embeds)
        shape = tuple(features.shape[1:]) if design is None else (design.width,)
        outputs = problem.outputs
        loop = Loop(self, features, train, None if split is None else problem.take(split[1]), seed)
        stream = RandomStream(torch.device("cpu"))
        stream.seed(seed, 3)
        with stream.lent():
            if self.module == "mlp":
                require_memory(prod(shape), self.hidden)
            network = self._new(shape, outputs, problem.pooling, design if embeds else None)
            require_scores(network, features[:2], outputs)
            self._set_start(network, problem)
        trained, history, best = loop.run(network, progress)
        fitted = FittedNetwork(trained, design, shape, outputs, problem.pooling, history=history, best=best)
        if split is not None and best is not None:
            fitted.splits = [split]
            fitted.validation_loss = history[best]["val_loss"]
            if problem.pooling is None:
                rows = problem.take(split[1]).bags.index.unique().numpy()
                fitted.held_out_logits = np.full((len(features), *outputs), np.nan)
                with stream.lent():
                    fitted.held_out_logits[rows] = fitted.logits(take(problem.instances, rows))
        return fitted

    def from_model(self, facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> FittedNetwork:
        require_widths(self.hidden)
        shape, outputs, pooling = tuple(facts["shape"]), tuple(facts["outputs"]), facts["pooling"]
        design = None if facts["design"] is None else Design.from_model(facts["design"], tensors)
        stream = RandomStream(torch.device("cpu"))
        stream.seed(0)
        # Fresh weights are replaced at once. Networks of ours are made without any, so that a file cannot ask for
        # memory that it does not fill; code of the user's may need real ones.
        with stream.lent(), torch.device("meta") if isinstance(self.module, str) else nullcontext():
            embeds = self._embeds(design) and any(name.endswith("0.embedding") for name in tensors)
            network = self._new(shape, outputs, pooling, design if embeds else None)
        weights = {name.removeprefix("network."): t for name, t in tensors.items() if name.startswith("network.")}
        if isinstance(self.module, str) and len({(t.dtype, t.is_floating_point()) for t in weights.values()}) > 1:
            raise ValueError("the model's weights must be of one dtype, a floating one.")
        try:
            network.load_state_dict(weights, assign=True)  # in the precision that was saved
        except RuntimeError as error:
            raise ValueError(f"`module` must be the network that the model was trained with; {error}") from None
        if design is not None and (design.width,) != shape:
            raise ValueError(f"the model's columns must be those of its network, {shape}; they make {design.width}.")
        return FittedNetwork(network.eval(), design, shape, outputs, pooling)

    def settled(self, fitted: Fitted, problem: Problem) -> Network:
        learner = copy(self)
        # A schedule then ends with the last of these epochs.
        learner.epochs = len(fitted.history) if fitted.best is None else fitted.best + 1
        learner.validation_fraction, learner.patience = 0.0, None
        learner.checkpoint, learner.callback = None, None  # of the fit to all bags
        return learner

    def _embeds(self, design: Design | None) -> bool:
        """Whether the first layer reads the places of categories; of few it reads a column of 0 and 1 for each."""
        wide = design is not None and design.width - design.dense_width > WIDE
        return wide and self.module == "mlp" and len(self.hidden) > 0

    def _new(
        self, shape: tuple[int, ...], outputs: tuple[int, ...], pooling: str | None, embedded: Design | None
    ) -> nn.Module:
        network = make_network(self.module, shape, hidden=self.hidden, dropout=self.dropout, outputs=outputs)
        if embedded is not None:
            dense = embedded.dense_width
            first = TableLinear(dense, embedded.width - dense, int(self.hidden[0]))
            network = nn.Sequential(first, *list(network.children())[1:])
        if pooling is not None:
            return with_attention(network, gated=pooling == "gated-attention")
        if isinstance(network, AttentionMIL):
            raise ValueError(
                "`module` must give one logit for each instance; an AttentionMIL gives one for each bag. It goes with "
                "MILClassifier(loss='attention')."
            )
        return network

    def _set_start(self, network: nn.Module, problem: Problem) -> None:
        """Let a new network begin at the rate that is asked for."""
        if self.start is None or isinstance(network, AttentionMIL):
            return
        if problem.outputs and self.start != "rate":
            raise ValueError(f"`start` must be 'rate' or None for several classes; got {self.start}.")
        if ends_in_logit(network) or (not problem.outputs and ends_in_bias(network)):
            start_at_rate(network, problem.start_rate if self.start == "rate" else float(self.start))
        elif self.start != "rate":
            raise TypeError(
                f"`module` must be a torch.nn.Sequential that ends in a kofn.learners.Logit when `start` is a number; "
                f"got {type(network).__name__}. Set the last bias to logit(rate) yourself, and leave `start` out."
            )

    def _design(self, train: Problem) -> Design | None:
        """How the columns of a table become the network's features; None for what is no table or is taken as it is."""
        if train.instances.ndim != 2:
            return None
        design = Design.learn(train.instances, train.categories, train.row_weights)
        return design if self.standardise or len(design.missing) or train.categories else None

    def require_options(self) -> None:
        """Parameters that would otherwise fail late, or not at all."""
        for name in ("epochs", "accumulate", "patience", "batch_size", "max_instances"):
            if getattr(self, name) is not None or name in ("epochs", "accumulate"):
                _require.whole_number(name, getattr(self, name), low=1, high=_require.LARGEST_INT)
        require_widths(self.hidden)
        for name, default in {"hidden": HIDDEN, "dropout": 0.0}.items():
            given = getattr(self, name)
            if not isinstance(self.module, str) and (tuple(given) if name == "hidden" else given) != default:
                raise ValueError(
                    f"`{name}` belongs to the network 'mlp', and would do nothing with a `module` of your own; got "
                    f"{given!r}. Leave it out."
                )
        if self.batch_size is not None and self.max_instances is not None:
            raise ValueError(
                f"either `batch_size` or `max_instances` must be given, not both; got {self.batch_size} and "
                f"{self.max_instances}."
            )
        for name in ("lr", "weight_decay", "l1"):
            _require.number(name, getattr(self, name), low=0, high=LARGEST_FACTOR)
        for name in ("dropout", "validation_fraction"):
            if _require.fraction(name, getattr(self, name)) == 1:
                raise ValueError(f"`{name}` must be below 1, or nothing is left to learn from; got 1.")
        _require.option("schedule", self.schedule, tuple(SCHEDULES))
        _require.option("precision", self.precision, ("float32", "bfloat16"))
        _require.option("device", self.device, ("cpu", "cuda", "auto"))
        if self.device == "cuda" and not torch.cuda.is_available():
            raise ValueError("`device` must be one that there is: 'cpu' or 'auto'; torch finds no GPU here.")
        if self.start not in (None, "rate") and not (isinstance(self.start, float) and 0 < self.start < 1):
            raise ValueError(f"`start` must be 'rate', None, or a probability above 0 and below 1; got {self.start!r}.")


def _features(instances: Instances, design: Design | None, *, embeds: bool) -> Tensor | MappedFeatures:
    """What a design makes of all instances: in memory, or when it is asked for, of a table in a file or a wide one."""
    if instances.ndim == 2:
        wide = design is not None and design.width > WIDE and not embeds
        if mapping_of(instances) is not None or wide:
            return MappedFeatures(instances, design, by_places=embeds)
    if design is None:
        return torch.from_numpy(instances)
    return torch.from_numpy(design.by_places(instances) if embeds else design(instances))


@dataclass(eq=False)
class FittedNetwork(Fitted):
    """A trained network in evaluation mode, on the CPU, and what makes features of a table for it."""

    network: nn.Module
    design: Design | None
    shape: tuple[int, ...]
    outputs: tuple[int, ...]
    pooling: str | None

    def logits(self, instances: Instances) -> Logits:
        """Logits (n,) or (n, C) of instances; an attention model scores an instance as a bag of one."""
        found = np.empty((len(instances), *self.outputs))
        for rows in blocks(instances):
            for start in range(rows.start, rows.stop, CHUNK):
                some = slice(start, min(start + CHUNK, rows.stop))
                found[some] = self._score(instances[some])
        return found

    def bag_logits(self, instances: Instances, bags: Bags) -> Logits:
        """Log-odds (b,) of bags, of a network that pools."""
        return self._score(instances[bags.index.numpy()], bags.offsets)

    def _score(self, instances: Instances, offsets: Tensor | None = None) -> Logits:
        if self.design is None:
            x = torch.from_numpy(instances)
        else:
            embeds = any(isinstance(part, TableLinear) for part in self.network.modules())
            x = torch.from_numpy(self.design.by_places(instances) if embeds else self.design(instances))
        with torch.no_grad():
            logits: Logits = network_logits(self.network.eval(), x, self.outputs, offsets).double().numpy()
        return logits

    def takes(self, shape: tuple[int, ...], categories: Mapping[int, int]) -> bool:
        return shape == self.shape if self.design is None else self.design.takes(shape, categories)

    def to_model(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        facts, tensors = (None, {}) if self.design is None else self.design.to_model()
        weights = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        about = {"shape": list(self.shape), "outputs": list(self.outputs), "pooling": self.pooling, "design": facts}
        return about, tensors | weights
