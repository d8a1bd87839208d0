"""`import kofn` is light; the estimators come when asked for, and say what they miss."""

from __future__ import annotations

import subprocess
import sys

import pytest

import kofn

# One process for all of it: to import torch is what takes the time.
CODE = """
import sys, kofn
print(sorted({"sklearn", "lightgbm", "pandas"} & set(sys.modules)))

sys.modules["sklearn"] = None
for ask in (lambda: kofn.LLPClassifier, lambda: __import__("kofn.estimators")):
    try:
        ask()
    except ImportError as error:
        print(error)
del sys.modules["sklearn"]

print(kofn.LLPClassifier.__name__, "sklearn" in sys.modules, "lightgbm" in sys.modules)
from kofn import MILClassifier
print(MILClassifier is kofn.estimators.MILClassifier)

import tempfile, numpy as np
X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
sys.modules["lightgbm"] = None
try:
    kofn.LLPClassifier().fit(X, y)
except ImportError as error:
    print(error)
for learner in (kofn.Linear(l2=0.1), kofn.Network(epochs=1, validation_fraction=0.0, patience=None)):
    model = kofn.LLPClassifier(learner).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder + "/model")
        print(kofn.estimators.load(folder + "/model").predict_bag_proba(X, [0, 0, 1, 1]).shape)
"""


@pytest.mark.slow
def test_what_is_imported_when() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "[]",
        "This needs scikit-learn, which is not installed: pip install kofn[train]",
        "This needs scikit-learn, which is not installed: pip install kofn[train]",
        "LLPClassifier True False",
        "True",
        "This needs lightgbm, which is not installed: pip install kofn[train]",
        "(2, 3)",  # all but trees does without it
        "(2, 3)",
    ]


def test_names() -> None:
    assert {"LLPClassifier", "MILClassifier", "PUClassifier", "Trees", "estimators", "learners"} <= set(dir(kofn))
    assert set(kofn.__all__) <= set(dir(kofn))
    for name in ("SVC", "training"):
        with pytest.raises(AttributeError, match=f"module 'kofn' has no attribute '{name}'"):
            getattr(kofn, name)
