"""Progress on stderr while a model trains, and what to do when it is cut off."""

from __future__ import annotations

from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

NAMES = {"training loss": "train_loss", "validation loss": "val_loss"}


class RichProgress(Callback):
    """A bar of epochs with losses and the time left; it also notes whether training was interrupted.

    Args:
        console: of stderr; on a file or pipe nothing is drawn.
    """

    def __init__(self, console: Console) -> None:
        self.interrupted = False
        self._bar = Progress(
            TextColumn("epoch"),
            MofNCompleteColumn(),
            BarColumn(),
            TextColumn("{task.fields[losses]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self._task: Any = None

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._task = self._bar.add_task("fit", total=trainer.max_epochs, completed=trainer.current_epoch, losses="")
        self._bar.start()

    def on_train_epoch_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        # The module writes its history after all callbacks have seen the end of an epoch.
        history: Any = pl_module.history
        if history:
            shown = [f"{name} {history[-1][key]:.4f}" for name, key in NAMES.items() if key in history[-1]]
            self._bar.update(self._task, losses=", ".join(shown))

    def on_train_batch_end(self, trainer: Trainer, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        part = (batch_idx + 1) / trainer.num_training_batches
        self._bar.update(self._task, completed=trainer.current_epoch + part)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self._bar.stop()

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        self._bar.stop()
        self.interrupted = isinstance(exception, KeyboardInterrupt)
