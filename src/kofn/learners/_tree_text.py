"""Trees as LightGBM's text, checked before LightGBM reads it: it trusts every number in there as a place in memory."""

from __future__ import annotations

import re

Fields = dict[str, str]

INNER = ("split_feature", "threshold", "decision_type", "left_child", "right_child")


def require_sound_trees(text: str, *, classes: int = 1) -> None:
    """Require that all that the text points to is there: trees, children, columns, sets of categories.

    Args:
        text: of a booster.
        classes: scores that the trees must give, one for each class.

    Raises:
        ValueError: something is not.
    """
    trees, end, _ = text.partition("end of trees\n")
    head, first, body = trees.partition("\nTree=0\n")
    body = first[1:] + body
    _require(
        bool(end and first) and trees.isascii() and "\r" not in trees and "\0" not in text, "there are none, or cut"
    )
    header = _fields([line for line in head.split("\n") if "=" in line])
    given = {header["num_class"], header["num_tree_per_iteration"]}
    _require(given == {str(classes)}, f"they must give {classes} score{'s' * (classes > 1)}")
    columns = int(header["max_feature_idx"]) + 1
    _require(len(header["feature_names"].split()) == columns, "their columns have other names")
    sizes = _whole(header["tree_sizes"])
    _require(min(sizes, default=0) > 0 and sum(sizes) == len(body), "they are of other sizes than they say")
    _require(len(sizes) % classes == 0, "a round must have a tree for each class")
    place = 0
    for number, size in enumerate(sizes):
        tree = re.fullmatch(rf"Tree={number}\n((?:\w+=[^\n]*\n)+)\n+", body[place : place + size])
        _require(tree is not None, f"tree {number} is none")
        _require_sound_tree(_fields(tree[1].splitlines() if tree else []), columns)
        place += size


def _require_sound_tree(tree: Fields, columns: int) -> None:
    leaves, sets = int(tree["num_leaves"]), int(tree["num_cat"])
    _require(leaves >= 1 and sets >= 0 and len(tree["leaf_value"].split()) == leaves, "a tree has other leaves")
    if leaves == 1:
        return
    _require(all(len(tree[name].split()) == leaves - 1 for name in INNER), "a tree has other splits")
    for side in ("left_child", "right_child"):
        # A split comes before those below it, so that every way down ends.
        below = enumerate(_whole(tree[side]))
        _require(all(at < child < leaves - 1 or -leaves <= child < 0 for at, child in below), "a split leads nowhere")
    _require(all(0 <= column < columns for column in _whole(tree["split_feature"])), "a split is on no column")
    kinds, thresholds = _whole(tree["decision_type"]), map(float, tree["threshold"].split())
    named = [threshold for kind, threshold in zip(kinds, thresholds, strict=True) if kind & 1]
    _require(all(0 <= threshold < sets for threshold in named), "a split is on no categories")
    if sets:
        bounds = _whole(tree["cat_boundaries"])
        _require(
            len(bounds) == sets + 1
            and bounds[0] == 0
            and bounds == sorted(bounds)
            and bounds[-1] == len(tree["cat_threshold"].split()),
            "a split is on no categories",
        )
    if tree["is_linear"] != "0":
        numbers, used = _whole(tree["num_features"]), _whole(tree["leaf_features"])
        _require(
            len(numbers) == len(tree["leaf_const"].split()) == leaves
            and min(numbers) >= 0
            and sum(numbers) == len(used) == len(tree["leaf_coeff"].split())
            and all(0 <= column < columns for column in used),
            "a leaf is on no column",
        )


def _fields(lines: list[str]) -> Fields:
    pairs = [(name, value) for name, _, value in (line.partition("=") for line in lines)]
    fields = dict(pairs)
    _require(len(fields) == len(pairs), "they say something twice")
    return fields


def _whole(text: str) -> list[int]:
    return [int(word) for word in text.split()]


def _require(sound: bool, problem: str) -> None:
    if not sound:
        raise ValueError(f"the model must hold trees as LightGBM writes them; {problem}.")
