from __future__ import annotations

import torch

torch.set_num_threads(1)  # as in the tests of the library: figures are computed in the same order everywhere
