"""What differs from the paper, beside each table: options, read from the recipes of both presets; the rest in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from paper.cells import METHODS, cells
from paper.recipes import Recipe, recipe

WIDTHS = {"pu_mnist_mlp": [5000, 5000, 50], "cifar_resnet18": "ResNet-18", "cifar_resnet8": "ResNet-8"}

# What no recipe tells. Of every table: kofn takes logits and computes in float64 inside, on a processor.
NOTES: dict[str, tuple[str, ...]] = {
    "llp": ("PL and CL share their hyperparameters but for L1, as in the paper.",),
    "mil": (
        "The paper weights the loss of positive bags against that of negative ones, with a weight found on 20 % of the "
        "bags that are held out; here the weight is 1 for all.",
        "Pixels lie between 0 and 1 unless the recipe standardises them, as the code of the attention methods' authors "
        "does.",
    ),
    "mil-instance": ("As for bags.",),
    "mil-small": ("The paper, too, has no class weights here.",),
    "colon": (
        "The paper averages five seeds; see each number for how many are here.",
        "The augmentation is our own: mirrored, turned and shifted patches.",
    ),
    "pu": (
        "For the baselines the accuracy is the mean over the last ten epochs, as the paper says.",
        "The paper chooses the weight of the positives on 10 % of the data; here it is the mixture times the bag's "
        "size.",
        "CVIR's authors begin with 100 of 2,000 epochs of labelled against unlabelled; here it ranks from the first "
        "epoch, and from the sixth of 20 on Binarized CIFAR.",
    ),
    "classes": ("The paper has no such table.",),
    "sums": ("The paper has no such table.",),
}


def differences(table: str) -> list[tuple[str, str, str, str]]:
    """What `fast` does otherwise than `paper`: option, methods, value of `paper`, value of `fast`.

    Args:
        table: its name, not "figures".

    Examples:
        >>> from paper.differences import differences
        >>> [line for line in differences("llp") if line[0] == "landmarks"]
        [('landmarks', 'LMMCM', 'none', '1024')]
    """
    found: dict[tuple[str, str, str], list[str]] = {}
    for method in METHODS[table]:
        mine = [each.cell for each in cells(table) if each.method == method]
        both = [[_options(recipe(table, cell, method, preset)) for cell in mine] for preset in ("paper", "fast")]
        names = dict.fromkeys(name for options in (*both[0], *both[1]) for name in options)
        for name in names:
            papers, ours = ([options.get(name) for options in each] for each in both)
            if papers != ours:
                found.setdefault((name, _values(papers), _values(ours)), []).append(method)
    return [(name, ", ".join(methods), papers, ours) for (name, papers, ours), methods in sorted(found.items())]


def differences_markdown(table: str) -> str:
    """The same as a table in Markdown, and below it what no recipe tells."""
    lines = differences(table)
    head = ["| option | methods | paper | here |", "|---|---|---|---|"] if lines else []
    body = [f"| `{name}` | {methods} | {papers} | {ours} |" for name, methods, papers, ours in lines]
    notes = [f"- {note}" for note in NOTES[table]]
    return "\n".join(head + body) + "\n\n" * bool(lines) + "\n".join(notes)


def _options(options: Recipe) -> Recipe:
    """The options of a recipe, its network in a word: the widths of its layers, or its name."""
    network = options.get("hidden") or WIDTHS.get(options.get("module", ""), options.get("module"))
    named = {name: value for name, value in options.items() if name not in ("module", "hidden")}
    return {"precision": "float32"} | named | {"network": network}


def _values(found: Iterable[Any]) -> str:
    """Different values in words; of many numbers the smallest and the largest."""
    values = list(found)
    different = [value for place, value in enumerate(values) if value not in values[:place]]
    if len(different) > 2 and all(isinstance(value, (int, float)) for value in different):
        return f"{_word(min(different))} to {_word(max(different))}"
    return " or ".join(map(_word, different))


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list):
        return "-".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
