"""Some hundred forged model files, read in a child process: an error or a right model each, and no crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.forge import SECONDS, forge, judge, make_models
from kofn._io.model_file import read_model
from kofn.learners._tree_text import _flat


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    make_models(folder)
    return folder


def test_a_number_is_always_the_same_file(models: Path) -> None:
    bases = {path.name: read_model(path) for path in sorted(models.iterdir()) if path.suffix != ".csv"}
    kinds = set()
    for number in range(40):
        one, again = forge(number, bases), forge(number, bases)
        assert (one.what, repr(one.model.facts)) == (again.what, repr(again.model.facts))
        kinds.add(one.what.partition(":")[0])
    assert kinds == {"text", "grammar", "facts", "tensors"}


@pytest.mark.slow
def test_forged_files_are_refused_or_right(models: Path) -> None:
    found = judge(models, range(300))
    assert [one for one in found if one["end"] not in ("refused", "right")] == []
    assert max(one["seconds"] for one in found) < SECONDS
    assert sum(one["end"] == "right" for one in found) > 30  # of which some are trees that the grammar made


def test_a_number_of_columns_that_a_file_claims_takes_no_time() -> None:
    """Found by number 7,442 of bench/forge.py: a loop over two billion columns of a leaf."""
    with pytest.raises(ValueError, match="a leaf is on no column"):
        _flat("0  1  ", [1, 2**31 - 1])
