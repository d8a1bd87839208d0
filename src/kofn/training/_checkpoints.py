"""A checkpoint on disk: whole or not at all, and never code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from lightning.fabric.plugins import TorchCheckpointIO
from lightning.pytorch.callbacks import ModelCheckpoint

from kofn._atomic_write import atomic_write

LAST = "last.ckpt"


class AtomicCheckpointIO(TorchCheckpointIO):
    """Checkpoints written aside in their own folder and renamed, read as tensors and plain values only.

    Lightning's own way is to write to the system's temporary folder and to move the file. From another file system a
    move is a copy: cut off in the middle it leaves half a checkpoint in place of the good one before.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        with atomic_write(path) as part:
            torch.save(checkpoint, part)

    def load_checkpoint(
        self, path: str | Path, map_location: Any = "cpu", weights_only: bool | None = None
    ) -> dict[str, Any]:
        """The checkpoint, whatever it was pickled with: only what cannot execute code is read."""
        try:
            checkpoint: dict[str, Any] = torch.load(path, map_location=map_location, weights_only=True)
        except (FileNotFoundError, PermissionError):
            raise
        except Exception as error:  # torch raises many kinds for a damaged file, OSError among them
            raise ValueError(
                f"`checkpoint` must hold a whole checkpoint; {path} cannot be read ({type(error).__name__}): it is cut "
                f"off, altered, or holds more than tensors and plain values. Delete it to start anew."
            ) from error
        ours = Path(path).name == LAST  # Lightning reads other files too, of weights alone
        if ours and not (isinstance(checkpoint, dict) and "state_dict" in checkpoint):
            raise ValueError(f"`checkpoint` must hold a checkpoint; {path} is none. Delete it to start anew.")
        return checkpoint


def keep_last(folder: Path) -> ModelCheckpoint:
    """After each epoch one checkpoint, in place of the one before."""
    return ModelCheckpoint(
        dirpath=folder,
        filename=LAST.removesuffix(".ckpt"),
        save_on_train_epoch_end=True,
        enable_version_counter=False,
    )
