"""One call to train: Lightning's Trainer, quiet, and able to go on where it was cut off."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, Trainer
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint, TQDMProgressBar

from kofn.training._data import CountData
from kofn.training._module import CountModule

LAST = "last.ckpt"


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
        device: Lightning's accelerator: "cpu", "gpu", "mps", "auto".
        precision: of the network, such as "bf16-mixed"; the loss is computed in float64 inside.
        progress: show Lightning's progress bar.
        checkpoint: folder for a checkpoint after each epoch. If it has one, training goes on from there, bit for bit as
            if it had never stopped. None writes nothing.
        trainer: options of `lightning.pytorch.Trainer` beyond these, or in their place: ``strategy="ddp"``,
            ``devices=2``, ``num_nodes``, ``logger=CSVLogger(...)``, ``callbacks=[...]``.

    Returns:
        The trainer, after the fit.

    Raises:
        KeyboardInterrupt: as it came; the last checkpoint, if asked for, is whole.
    """
    options = dict(trainer or {})
    callbacks: list[Callback] = list(options.pop("callbacks", None) or [])
    if patience is not None:
        callbacks.append(Patience(monitor="criterion", patience=patience, check_on_train_epoch_end=True))
    if checkpoint is not None:
        callbacks.append(_keep_last(Path(checkpoint)))
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
        machine = Trainer(**(defaults | options), callbacks=callbacks)
        resume = str(last) if last is not None and last.exists() else None
        machine.fit(module, datamodule=data, ckpt_path=resume, weights_only=True if resume else None)
    return machine


def _keep_last(folder: Path) -> ModelCheckpoint:
    """After each epoch one checkpoint, in place of the one before; written aside and renamed by Lightning."""
    return ModelCheckpoint(
        dirpath=folder,
        filename=LAST.removesuffix(".ckpt"),
        save_on_train_epoch_end=True,
        enable_version_counter=False,
    )


class Patience(EarlyStopping):
    """Lightning's early stopping, which remembers after a restart that it had stopped."""

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
            for message in ADVICE:
                warnings.filterwarnings("ignore", message)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def interruptible() -> Iterator[None]:
    """Ctrl-C stays Ctrl-C, that a notebook or a caller can catch: Lightning would leave Python."""
    try:
        yield
    except SystemExit as end:
        if not isinstance(end.__context__, KeyboardInterrupt):
            raise
        raise end.__context__ from None


ADVICE = [
    ".*does not have many workers.*",  # batches are gathered in place, in one call
    ".*Checkpoint directory .* exists and is not empty.*",  # that is how a run goes on
    ".*GPU available but not used.*",
    ".*MPS available but not used.*",
    ".*`isinstance\\(treespec, LeafSpec\\)` is deprecated.*",
    ".*`weights_only`.*",
]
