r"""Trees as LightGBM's text, checked before LightGBM reads it: it trusts every number in there as a place in memory.

Only what LightGBM writes is taken, to the character, because the two read other texts differently: Python's ``int``
takes ``1_0`` as 10 and its ``split`` takes ``\x1f`` as a space, where LightGBM reads 1 and one word.
"""

from __future__ import annotations

import re

Fields = dict[str, str]

_INTEGER = r"(?:0|-?[1-9][0-9]*)"
_WHOLE = re.compile(f"{_INTEGER}(?: {_INTEGER})*")
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?"
_NUMBERS = re.compile(f"{_NUMBER}(?: {_NUMBER})*")
_NAMES = re.compile(r"\S+(?: \S+)*")
_TAIL = re.compile(  # from here on LightGBM reads no trees
    r"\nfeature_importances:\n(?:\S+=[0-9]+\n)*\nparameters:\n(?:\[\w+: [^\n\0]*\]\n)*\nend of parameters\n"
    r"\npandas_categorical:null\n"
)
_LARGEST_INT = 2**31 - 1
_LARGEST_FLOAT = 3.4e38  # gains are kept in single precision

_HEAD = {"version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "feature_names"}
_HEAD |= {"feature_infos", "tree_sizes"}
_HEAD_OPTIONS = {"monotone_constraints"}

# The fields of a tree: whole numbers or any, and how many.
_OF_TREE = {"num_leaves", "num_cat", "is_linear"}
_OF_SPLITS = ("split_feature", "decision_type", "left_child", "right_child", "internal_count")
_OF_SPLITS_REAL = ("split_gain", "threshold", "internal_value", "internal_weight")
_OF_LEAVES_REAL = ("leaf_value", "leaf_weight")
_CATEGORIES = {"cat_boundaries", "cat_threshold"}
_LINEAR = {"leaf_const", "num_features", "leaf_features", "leaf_coeff"}
_PLAIN = _OF_TREE | {*_OF_SPLITS, *_OF_SPLITS_REAL, *_OF_LEAVES_REAL, "leaf_count", "shrinkage"}


def require_sound_trees(text: str, *, classes: int = 1) -> None:
    """Require that all that the text points to is there: trees, children, columns, sets of categories.

    Args:
        text: of a booster.
        classes: scores that the trees must give, one for each class.

    Raises:
        ValueError: something is not, or the text is not written as LightGBM writes it.
    """
    trees, end, tail = text.partition("end of trees\n")
    head, first, body = trees.partition("\nTree=0\n")
    body = first[1:] + body
    _require(bool(end and first) and re.fullmatch(r"[\n -~]*", trees) is not None, "there are none, or cut")
    _require(_TAIL.fullmatch(tail) is not None, "their end is another")
    kind, *lines = head.rstrip("\n").split("\n")
    _require(kind == "tree", "they begin otherwise")
    header = _fields(lines)
    _require(header.keys() - _HEAD_OPTIONS == _HEAD, "their header says something else")
    given = {header["num_class"], header["num_tree_per_iteration"]}
    _require(given == {str(classes)}, f"they must give {classes} score{'s' * (classes > 1)}")
    columns = _one(header["max_feature_idx"]) + 1
    for name in ("feature_names", "feature_infos"):
        words = header[name]
        _require(_NAMES.fullmatch(words) is not None and words.count(" ") == columns - 1, "their columns are others")
    sizes = _whole(header["tree_sizes"])
    _require(min(sizes, default=0) > 0 and sum(sizes) == len(body), "they are of other sizes than they say")
    _require(len(sizes) % classes == 0, "a round must have a tree for each class")
    place = 0
    for number, size in enumerate(sizes):
        tree = re.fullmatch(rf"Tree={number}\n((?:\w+=[^\n]*\n)+)\n+", body[place : place + size])
        _require(tree is not None, f"tree {number} is none")
        _require_sound_tree(_fields(tree[1].rstrip("\n").split("\n") if tree else []), columns)
        place += size


def _require_sound_tree(tree: Fields, columns: int) -> None:
    _require(tree.keys() >= _OF_TREE, "a tree lacks something")
    leaves, sets, linear = _one(tree["num_leaves"]), _one(tree["num_cat"]), _one(tree["is_linear"])
    _require(leaves >= 1 and sets >= 0 and linear in (0, 1), "a tree has no leaves")
    expected = _PLAIN | (_CATEGORIES if sets else set()) | (_LINEAR if linear else set())
    _require(tree.keys() == expected, "a tree says something else")
    _real(tree["shrinkage"], 1)
    values = {name: _real(tree[name], leaves) for name in _OF_LEAVES_REAL}
    values |= {name: _real(tree[name], leaves - 1) for name in _OF_SPLITS_REAL}
    _require(max(map(abs, values["split_gain"]), default=0) <= _LARGEST_FLOAT, "a gain is not finite")
    whole = {name: _whole(tree[name], leaves - 1) for name in _OF_SPLITS}
    _whole(tree["leaf_count"], leaves if leaves > 1 or tree["leaf_count"] else 0)
    below: list[int] = []
    for side in ("left_child", "right_child"):
        # A split comes before those below it, so that every way down ends.
        _require(all(child < 0 or child > at for at, child in enumerate(whole[side])), "a split leads nowhere")
        below += whole[side]
    # One way leads to each split and leaf but the first: many would take a recursion beyond all time.
    _require(leaves == 1 or sorted(below) == [*range(-leaves, 0), *range(1, leaves - 1)], "a split leads nowhere")
    _require(all(0 <= column < columns for column in whole["split_feature"]), "a split is on no column")
    kinds = whole["decision_type"]
    _require(all(0 <= kind < 16 for kind in kinds), "a split is of no kind")
    named = [threshold for kind, threshold in zip(kinds, values["threshold"], strict=True) if kind & 1]
    _require(all(threshold in range(sets) for threshold in named), "a split is on no categories")
    if sets:
        bounds = _whole(tree["cat_boundaries"], sets + 1)
        _require(bounds[0] == 0 and bounds == sorted(bounds), "a split is on no categories")
        _whole(tree["cat_threshold"], bounds[-1], largest=2**32 - 1)
    if linear:
        _require_sound_lines(tree, leaves, columns)


def _require_sound_lines(tree: Fields, leaves: int, columns: int) -> None:
    """Require the columns and coefficients of the leaves of a linear tree."""
    numbers = _whole(tree["num_features"], leaves)
    _real(tree["leaf_const"], leaves)
    _require(min(numbers) >= 0, "a leaf is on no column")
    used = _whole(_flat(tree["leaf_features"], numbers), sum(numbers))
    _real(_flat(tree["leaf_coeff"], numbers), sum(numbers))
    _require(all(0 <= column < columns for column in used), "a leaf is on no column")


def _flat(text: str, numbers: list[int]) -> str:
    """Words with single spaces, of a text in which one more follows each word, and one more each leaf's words."""
    words = text.split()
    _require(sum(numbers) == len(words), "a leaf is on no column")  # before as many are looked for as a file says
    rest = iter(words)
    written = "".join("".join(f"{next(rest, '')} " for _ in range(number)) + " " for number in numbers[: len(text)])
    _require(written == text, "a leaf is on no column")
    return " ".join(words)


def _fields(lines: list[str]) -> Fields:
    pairs = [(name, value) for name, _, value in (line.partition("=") for line in lines)]
    fields = dict(pairs)
    _require(len(fields) == len(pairs), "they say something twice")
    return fields


def _one(text: str) -> int:
    return _whole(text, 1)[0]


def _whole(text: str, length: int | None = None, *, largest: int = _LARGEST_INT) -> list[int]:
    """Whole numbers with single spaces between them, as many as `length` says."""
    _require(not text or _WHOLE.fullmatch(text) is not None, "numbers are written otherwise")
    _require(max(map(len, text.split(" "))) < 20, "a number is too large")
    found = [int(word) for word in text.split()]
    _require(length is None or len(found) == length, "a tree has other splits or leaves")
    _require(all(-_LARGEST_INT <= number <= largest for number in found), "a number is too large")
    return found


def _real(text: str, length: int) -> list[float]:
    """Finite numbers with single spaces between them, as many as `length` says."""
    _require(not text or _NUMBERS.fullmatch(text) is not None, "numbers are written otherwise")
    found = [float(word) for word in text.split()]
    _require(len(found) == length, "a tree has other splits or leaves")
    _require(all(abs(number) < float("inf") for number in found), "a number is not finite")
    return found


def _require(sound: bool, problem: str) -> None:
    if not sound:
        raise ValueError(f"the model must hold trees as LightGBM writes them; {problem}.")
