"""Files that say what no fit said: refused, at no cost."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from estimator_cases import bags_task
from model_file_cases import forge

import kofn
from kofn._io.model_file import read_model, write_model
from kofn.estimators import load
from kofn.learners._tree_text import require_sound_trees

TASK = bags_task(bags=12)
TABLE = pd.DataFrame({"age": TASK.X[:, 0], "sex": np.resize(["f", "m", "x"], len(TASK.X)), "height": TASK.X[:, 1]})
LEARNERS: dict[str, Callable[[], Any]] = {
    "trees": lambda: kofn.Trees(rounds=3),
    "linear": lambda: kofn.Linear(l2=0.1),
    "network": lambda: kofn.Network(hidden=(3,), epochs=1, validation_fraction=0.0, patience=None),
}
HUGE = 1 << 40


@pytest.fixture(scope="module", params=LEARNERS)
def learner(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The file of each learner."""
    found = {}
    for name, make in LEARNERS.items():
        path = tmp_path_factory.mktemp("saved") / name
        kofn.LLPClassifier(make(), random_state=0).fit(TABLE, TASK.y, groups=TASK.groups).save(path)
        found[name] = path.read_bytes()
    return found


def changed(facts: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Facts with these, where dots lead into a dict; those of ... left out."""
    found = dict(facts)
    for name, value in changes.items():
        head, _, rest = name.partition(".")
        if rest:
            found[head] = changed(found[head], {rest: value})
        elif value is ...:
            del found[head]
        else:
            found[head] = value
    return found


def forged(path: Path, data: bytes, changes: dict[str, Any]) -> Path:
    path.write_bytes(data)
    forge(path, facts=changed(read_model(path).facts, changes))
    return path


WRONG = "must hold a LLPClassifier as this kofn writes it; .*Written by kofn"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"classes_dtype": "<U100000000"}, "must have classes of at most 16777216 bytes; their dtype is <U100000000"),
        ({"classes_dtype": "no such"}, "must have classes that are numbers or text"),
        ({"classes": [[0], [1]]}, "must have classes that are numbers or text"),
        ({"classes": [1, 1]}, "must have classes that differ"),
        ({"rate": 1.5}, "must have rates from 0 to 1"),
        ({"columns.names": ["age", "sex", 3]}, r"columns.names\[2\] is a int"),
        ({"columns.names": ["age", "sex", ["height"]]}, r"columns.names\[2\] is a list"),
        ({"columns.names": ["age", "sex", "age"]}, "names and categories that differ"),
        ({"columns.names": ["age", "sex"]}, "must be of 3 columns in all its parts"),
        ({"columns.categories": {"sex": ["f", {}, "x"]}}, r"columns.categories.sex\[1\] is a dict"),
        ({"columns.categories": {"sex": ["f", "f", "x"]}}, "names and categories that differ"),
        ({"parameters.noise": [[]]}, "as this kofn writes it|`noise` must"),
        ({"parameters.noise": "loud"}, "`noise` must be a distribution and its scale"),
        ({"parameters.bootstrap": 1 << 70, "n_features_in": 1 << 70}, "n_features_in is beyond 64 bits"),
        ({"bag_effect": [1e308, None]}, "`bag_effect` must be from 0 to 1e.06"),
        ({"loss": None}, "`loss` must be one of 'count'"),
        ({"n_features_in": 2}, "must be of 2 columns in all its parts"),
        ({"instance_shape": [2]}, "must be of 3 columns in all its parts"),
        ({"classes": [0] * 100_000, "classes_dtype": "<U16384"}, "at most 16777216 bytes; their dtype is <U16384"),
        ({"classes": [0, 1, 2]}, "must have a rate and a score for each of its 3 classes"),
        ({"classes": [0, 1, 2], "rate": [0.5, 0.3, 0.2]}, "must have a rate and a score for each of its 3 classes"),
        ({"classes": 7}, WRONG),
        ({"held_out": [1 << 80]}, WRONG),
        ({"instance_shape": None}, WRONG),
        ({"parameters": []}, WRONG),
        ({"parameters": {"temperature": 2}}, WRONG),
        ({"not_saved": ...}, "KeyError.*not_saved"),
        ({"learner": "trees"}, "its learner is a str"),
        ({"learner.kind": "EM"}, "must hold trees, a linear model or a network; it says 'EM'"),
        ({"learner.kind": "os.system"}, "must hold trees, a linear model or a network; it says 'os.system'"),
        ({"learner.kind": ["Trees"]}, WRONG),
        ({"learner.parameters": {"temperature": 2}}, WRONG),
        ({"learner.parameters": [1]}, WRONG),
        ({"learner.state": {}}, WRONG),
        ({"learner.state": None}, WRONG),
        ({"columns": 3}, WRONG),
        ({"extra": [1]}, "its extra is a list"),
        ({"bag_effect": [1e8, None]}, "`bag_effect` must be from 0 to 1e.06; got 100000000.0"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_facts_that_are_wrong(
    saved: dict[str, bytes], learner: str, changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        load(forged(tmp_path / "model", saved[learner], changes))
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learner.parameters.hidden": [HUGE]}, "`hidden` must be widths of layers"),
        ({"learner.parameters.hidden": [1 << 80]}, "."),
        ({"learner.parameters.hidden": [HUGE, HUGE]}, "."),
        ({"learner.parameters.hidden": [-3]}, "`hidden` must be widths of layers"),
        ({"learner.parameters.module": "builtins:exec"}, "`module` must be 'mlp', a torch.nn.Module"),
        ({"learner.state.shape": [HUGE]}, "`module` must be the network that the model was trained with"),
        ({"learner.state.shape": [1, 5]}, "`module` must be the network|columns must be those of its network"),
        ({"learner.state.shape": [6]}, "`module` must be the network that the model was trained with"),
        ({"learner.state.shape": []}, "."),
        ({"learner.state.pooling": "attention"}, "`module` must be the network that the model was trained with"),
        ({"learner.state.design": {"categories": [[1, HUGE]]}}, "columns must be those of its network"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_network_that_is_another(
    saved: dict[str, bytes], changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        load(forged(tmp_path / "model", saved["network"], changes))
    assert "alloc" not in str(raised.value)


@pytest.mark.parametrize("name", ["linear", "network"])
@pytest.mark.parametrize(
    "categories",
    [[[1, HUGE]], [[1, HUGE], [2, 3 - HUGE]], [[1, 3.0]], [["1", 3]], [1], 3, {"1": 3}],
    ids=str,
)
def test_categories_that_cannot_be(saved: dict[str, bytes], name: str, categories: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"the model|as this kofn writes it"):
        load(forged(tmp_path / "model", saved[name], {"learner.state.design": {"categories": categories}}))


def text_of(tensors: dict[str, torch.Tensor]) -> str:
    return tensors["trees"].numpy().tobytes().decode()


def rewritten(path: Path, data: bytes, tensors: dict[str, torch.Tensor]) -> Path:
    """The file with other tensors; those of None left out."""
    path.write_bytes(data)
    model = read_model(path)
    kept = {name: tensor for name, tensor in (model.tensors | tensors).items() if tensor is not None}
    write_model(path, kind=model.kind, facts=model.facts, tensors=kept)
    return path


def test_tensors_that_are_missing(saved: dict[str, bytes], learner: str, tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(saved[learner])
    for name in read_model(tmp_path / "model").tensors:
        with pytest.raises(ValueError, match=r"as this kofn writes it|Missing key"):
            load(rewritten(tmp_path / "other", saved[learner], {name: None}))  # type: ignore[dict-item]  # None takes it out


def test_tensors_of_other_shapes(saved: dict[str, bytes], tmp_path: Path) -> None:
    for learner in ("linear", "network"):
        (tmp_path / "model").write_bytes(saved[learner])
        for name, tensor in read_model(tmp_path / "model").tensors.items():
            for other in (torch.cat([tensor, tensor, tensor]), tensor[None], tensor.sum()):
                if torch.equal(other.flatten(), tensor.flatten()) and other.shape == tensor.shape:
                    continue  # none are missing, and thrice none is none
                with pytest.raises(ValueError, match=r"the model|as this kofn writes it"):
                    load(rewritten(tmp_path / "other", saved[learner], {name: other}))


ALTERATIONS: dict[str, Callable[[str], str]] = {
    "nonsense": lambda text: "nonsense",
    "no tree": lambda text: "tree\nnum_leaves=3\n",
    "cut": lambda text: text[: len(text) // 3],  # which ends LightGBM 4.6 with a segmentation fault
    "sizes": lambda text: text.replace("tree_sizes=", "tree_sizes=9"),
    "classes": lambda text: text.replace("num_tree_per_iteration=1", "num_tree_per_iteration=0"),
    "leaves": lambda text: text.replace("num_leaves=", "num_leaves=9999999"),
    "space": lambda text: text.replace("num_leaves=", "num_leaves= 9999999"),
    "minus": lambda text: text.replace("num_leaves=", "num_leaves=-9999999"),
    "features": lambda text: text.replace("max_feature_idx=", "max_feature_idx=9999999"),
    "categories": lambda text: of_one_size(text, "num_cat=0", "num_cat=9"),
    "column": lambda text: of_one_size(text, "split_feature=0", "split_feature=9"),
    "circle": lambda text: of_one_size(text, "left_child=1", "left_child=0"),
    "child": lambda text: of_one_size(text, "left_child=1", "left_child=9"),
    "twice": lambda text: text.replace("num_class=1", "num_class=1\nnum_class=1"),
    "zero": lambda text: text + "\0",
    # LightGBM reads other numbers here than Python: these ended the process, or never ended.
    "leaves with an underscore": lambda text: re.sub("num_leaves=.*", "num_leaves=1_0", text, count=1),
    "a zero too many": lambda text: text.replace("is_linear=0", "is_linear=00", 1),
    "a child with an underscore": lambda text: of_one_size(text, "left_child=1", "left_child=0_1"),
    "children joined by a control character": lambda text: joined(text, "left_child", "\x1f"),
    "children joined by a tab": lambda text: joined(text, "left_child", "\t"),
    "columns joined by a comma": lambda text: joined(text, "split_feature", ","),
    "two blanks": lambda text: joined(text, "right_child", "  "),
    "a plus": lambda text: of_one_size(text, "split_feature=0", "split_feature=+0"),
    "another digit": lambda text: of_one_size(text, "split_feature=0", "split_feature=\u0660"),
    "beyond 32 bits": lambda text: of_one_size(text, "split_feature=0", "split_feature=4294967296"),
    "a kind beyond 8 bits": lambda text: re.sub("decision_type=(.*)", r"decision_type=256 \1", text),
    "a leaf that is no number": lambda text: re.sub("leaf_value=[^ ]*", "leaf_value=nan", text, count=1),
    "a leaf that is too large": lambda text: re.sub("leaf_value=[^ ]*", "leaf_value=1e999", text, count=1),
    "two ways to a leaf": lambda text: re.sub("right_child=-2", "right_child=-1", text, count=1),
    "a field more": lambda text: text.replace("shrinkage=", "internal=1\nshrinkage=", 1),
    "a header more": lambda text: text.replace("label_index=0", "label_index=0\nobjective=binary sigmoid:-1"),
    "an average": lambda text: text.replace("label_index=0", "label_index=0\naverage_output"),
    "another end": lambda text: text.replace("pandas_categorical:null", "pandas_categorical:" + "[" * 100_000),
    # Only these three tell that sets of categories overlap, or run backwards.
    "sets that run backwards": lambda text: with_sets(text, "0 2 1 2"),
    "sets below 0": lambda text: with_sets(text, "0 -1 1 2"),
    "sets beyond the end": lambda text: with_sets(text, "0 9 2 2"),
}


def joined(text: str, name: str, by: str) -> str:
    """The words of a field joined by something else than a blank."""
    return re.sub(f"{name}=(.* .*)", lambda found: f"{name}={found[1].replace(' ', by)}", text, count=1)


def with_sets(text: str, bounds: str) -> str:
    """Three sets of categories, which lie between these bounds; the size of the tree is right."""
    altered = re.sub("num_cat=[0-9]+", "num_cat=3", text, count=1)
    altered = re.sub("cat_boundaries=.*", f"cat_boundaries={bounds}", altered, count=1)
    altered = re.sub("cat_threshold=.*", "cat_threshold=1 2", altered, count=1)
    assert bounds in altered
    return altered


def resized(text: str) -> str:
    """The text with the size of each tree."""
    trees = text.partition("end of trees")[0]
    starts = [found.start() for found in re.finditer("^Tree=", trees, re.MULTILINE)]
    sizes = [end - start for start, end in zip(starts, [*starts[1:], len(trees)], strict=True)]
    return re.sub("tree_sizes=.*", f"tree_sizes={' '.join(map(str, sizes))}", text)


def of_one_size(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


SIZED = list(ALTERATIONS)[list(ALTERATIONS).index("zero") :]  # whose trees have the sizes that they say


@pytest.mark.parametrize("name", ALTERATIONS)
def test_trees_that_are_none(saved: dict[str, bytes], name: str, tmp_path: Path) -> None:
    alter = ALTERATIONS[name]
    (tmp_path / "model").write_bytes(saved["trees"])
    whole = text_of(read_model(tmp_path / "model").tensors)
    require_sound_trees(whole)
    text = alter(whole)
    assert text != whole
    if name in SIZED:
        text = resized(text)
    tensor = torch.from_numpy(np.frombuffer(text.encode(), dtype=np.uint8).copy())
    with pytest.raises(ValueError, match="trees"):
        load(rewritten(tmp_path / "other", saved["trees"], {"trees": tensor}))


LITTLE = """
import resource, sys
import kofn
from kofn.estimators import load
load(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for path in sys.argv[2:]:
    try:
        load(path)
    except ValueError:
        continue
    sys.exit("no error: " + path)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
def test_no_memory_is_taken(saved: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "whole").write_bytes(saved["network"])
    changes: list[dict[str, Any]] = [
        {"classes_dtype": "<U100000000"},
        {"classes": [0] * 100_000, "classes_dtype": "<U16384"},
        {"learner.parameters.hidden": [1 << 28]},  # a gigabyte each
        {"learner.state.shape": [1 << 26]},
        {"learner.parameters.module": "mlp", "learner.parameters.hidden": [1 << 15, 1 << 15]},
    ]
    paths = [forged(tmp_path / str(i), saved["network"], change) for i, change in enumerate(changes)]
    done = subprocess.run(
        [sys.executable, "-c", LITTLE, *map(str, [tmp_path / "whole", *paths])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 200  # megabytes


@pytest.mark.parametrize("options", [{}, {"linear_tree": True}, {"cat_smooth": 0, "min_data_per_group": 1}], ids=str)
def test_trees_of_all_kinds_are_sound(options: dict[str, Any], tmp_path: Path) -> None:
    learner = kofn.Trees(rounds=20, leaves=6, options=options)
    model = kofn.LLPClassifier(learner, random_state=0).fit(TABLE, TASK.y, groups=TASK.groups)
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").decision_function(TABLE), model.decision_function(TABLE))
