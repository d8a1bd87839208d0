from __future__ import annotations

import torch
from hypothesis import settings

torch.set_num_threads(1)  # a second, spinning thread beside the other test process costs more than it brings

settings.register_profile("kofn", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("kofn")
