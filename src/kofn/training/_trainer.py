"""One call to train: Lightning's Trainer, quiet, and able to go on where it was cut off."""

from __future__ import annotations

import logging
import signal
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import EarlyStopping, TQDMProgressBar

from kofn import _require
from kofn.training._checkpoints import LAST, AtomicCheckpointIO, keep_last
from kofn.training._data_module import CountData
from kofn.training._module import CountModule


def fit(
    module: CountModule,
    data: CountData,
    *,
    epochs: int,
    patience: int | None = None,
    accumulate: int = 1,
    device: str = "cpu",
    precision: str = "32-true",
    progress: bool = False,
    checkpoint: str | Path | None = None,
    trainer: Mapping[str, Any] | None = None,
) -> Trainer:
    """Train a module on bags; with a folder for checkpoints, go on from the last one there.

    Args:
        module: the network and its objective; trained in place, with its best weights at the end.
        data: training and, if any, validation bags.
        epochs: at most so many.
        patience: stop after so many epochs without a smaller criterion; None never stops early.
        accumulate: batches in a step, to have steps larger than memory; the gradient is that of the whole step.
        device: Lightning's accelerator: "cpu", "gpu", "auto". Not "mps", which has no float64.
        precision: of the network, such as "bf16-mixed"; the loss is computed in float64 inside.
        progress: show Lightning's progress bar.
        checkpoint: folder for a checkpoint after each epoch. If it has one, training goes on from there, bit for bit as
            if it had never stopped. None writes nothing.
        trainer: options of `lightning.pytorch.Trainer` beyond these, or in their place: ``strategy="ddp"``,
            ``devices=2``, ``num_nodes``, ``logger=CSVLogger(...)``, ``callbacks=[...]``.

    Returns:
        The trainer, after the fit.

    Raises:
        ValueError: `patience` without validation bags; a checkpoint of another fit, or one that cannot be read; a loss
            that is not finite.
        KeyboardInterrupt: as it came; the last checkpoint, if asked for, is whole.

    Examples:
        >>> import torch, kofn
        >>> from kofn import models
        >>> from kofn.batches import BagDataset
        >>> from kofn.training import CountData, CountModule, CountObjective, fit
        >>> x = torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
        >>> bags = kofn.Bags.from_sizes([4] * 100)
        >>> counts = bags.sum((x[:, 0] > 0).long())
        >>> module = CountModule(models.mlp(2, ()), CountObjective(), lr=0.1, seed=0)
        >>> trainer = fit(module, CountData(BagDataset(x, bags, counts), batch_size=10), epochs=5)
        >>> len(module.history), bool(((module.network(x) > 0) == (x[:, 0] > 0)).float().mean() > 0.95)
        (5, True)
    """
    _require.whole_number("epochs", epochs, low=1)  # Lightning takes -1 for no end
    _require.whole_number("accumulate", accumulate, low=1)
    if patience is not None:
        _require.whole_number("patience", patience, low=1)
        if data.valid is None:
            raise ValueError(f"`patience` needs validation bags to judge by; got {patience} and no `valid` in `data`.")
    options = dict(trainer or {})
    callbacks: list[Callback] = _as_list(options.pop("callbacks", None))
    if patience is not None:
        callbacks.append(Patience(monitor="criterion", patience=patience, check_on_train_epoch_end=False))
    plugins: list[Any] = _as_list(options.pop("plugins", None))
    if checkpoint is not None:
        callbacks.append(keep_last(Path(checkpoint)))
        plugins.append(AtomicCheckpointIO())
    if progress:
        callbacks.append(TQDMProgressBar(refresh_rate=50))
    defaults: dict[str, Any] = {
        "accelerator": device,
        "devices": 1,
        "precision": precision,
        "max_epochs": epochs,
        "accumulate_grad_batches": accumulate,
        "logger": False,
        "enable_checkpointing": checkpoint is not None,
        "enable_progress_bar": progress,
        "enable_model_summary": False,
        "num_sanity_val_steps": 0,
        "limit_val_batches": 1.0 if data.valid is not None else 0,
        "use_distributed_sampler": False,
        "log_every_n_steps": 1,
    }
    last = None if checkpoint is None else Path(checkpoint) / LAST
    with quiet(), interruptible():
        lightning_trainer = Trainer(**(defaults | options), callbacks=callbacks, plugins=plugins)
        lightning_trainer.fit(
            module, datamodule=data, ckpt_path=str(last) if last is not None and last.exists() else None
        )
    return lightning_trainer


def _as_list(value: Any) -> list[Any]:
    """One, some or none, as Lightning takes them, in a new list."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


class Patience(EarlyStopping):
    """Lightning's early stopping, which remembers after a restart that it had stopped, unless told to wait longer."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict | {"patience": self.patience})

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        if self.wait_count >= self.patience:
            trainer.should_stop = True


@contextmanager
def quiet() -> Iterator[None]:
    """Nothing printed but what is asked for: Lightning's tips and the advice that does not hold here are silenced."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric", "lightning")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for message in IGNORED_WARNINGS:
                warnings.filterwarnings("ignore", message)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C is a KeyboardInterrupt: Lightning makes it an exit of Python and leaves the signal ignored."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as end:
        if not isinstance(end.__context__, KeyboardInterrupt):
            raise
        signal.signal(signal.SIGINT, handler)
        raise KeyboardInterrupt from None


IGNORED_WARNINGS = [
    ".*does not have many workers.*",  # batches are gathered in place, in one call
    ".*Checkpoint directory .* exists and is not empty.*",  # that is how a run goes on
    ".*The dirpath has changed from.*",  # the folder may have been moved
    ".*GPU available but not used.*",
    ".*MPS available but not used.*",
    ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*",
    ".*`weights_only`.*",
]
