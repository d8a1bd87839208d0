"""`import kofn` is light; the estimators come when asked for, and say what they miss."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kofn

# One process for all of it: to import torch is what takes the time.
CODE = """
import sys, kofn
print(sorted({"sklearn", "lightning", "pandas"} & set(sys.modules)))

sys.modules["sklearn"] = None
for ask in (lambda: kofn.LLPClassifier, lambda: __import__("kofn.estimators")):
    try:
        ask()
    except ImportError as error:
        print(error)
del sys.modules["sklearn"]

print(kofn.LLPClassifier.__name__, "sklearn" in sys.modules, "lightning" in sys.modules)
from kofn import MILClassifier
print(MILClassifier is kofn.estimators.MILClassifier)

sys.modules["lightning"] = None
try:
    kofn.LLPClassifier().fit([[0.0], [1.0]], [0, 1])
except ImportError as error:
    print(error)

import tempfile, numpy as np
model = kofn.LLPClassifier(hidden=())  # as if it had been trained elsewhere
model.network_, model.instance_shape_, model.seed_ = model._new_network((2,)), (2,), 0
model.classes_, model.n_features_in_, model.history_, model.best_step_ = np.array([0, 1]), 2, [], None
model.held_out_ = np.array([], int)
with tempfile.TemporaryDirectory() as folder:
    model.save(folder + "/model")
    print(kofn.estimators.load(folder + "/model").predict_bag_proba(np.zeros((4, 2)), [0, 0, 1, 1]).shape)
"""


def test_what_is_imported_when() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[]",
        "This needs scikit-learn, which is not installed: pip install kofn[train]",
        "This needs scikit-learn, which is not installed: pip install kofn[train]",
        "LLPClassifier True False",
        "True",
        "This needs lightning, which is not installed: pip install kofn[train]",
        "(2, 3)",  # a saved model predicts without Lightning
    ]


def test_names() -> None:
    assert {"LLPClassifier", "MILClassifier", "PUClassifier", "estimators", "training"} <= set(dir(kofn))
    assert set(kofn.__all__) <= set(dir(kofn))
    with pytest.raises(AttributeError, match="module 'kofn' has no attribute 'SVC'"):
        kofn.SVC  # noqa: B018
