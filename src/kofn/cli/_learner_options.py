"""The options of learners as text: read from their signatures and docstrings, so that none is written twice."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from inspect import getdoc, signature
from math import isfinite
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

NAMES = ("trees", "linear", "network")


@dataclass(frozen=True)
class LearnerOption:
    """An option of a learner.

    Attributes:
        name: as `--set` has it.
        kinds: the types that its value may have, of those that can be written.
        default: the value that it has if nothing is said.
        words: what the docstring says of it.
    """

    name: str
    kinds: tuple[Any, ...]
    default: Any
    words: str

    @property
    def takes(self) -> str:
        """What a value may be, in words.

        Examples:
            >>> LearnerOption("l2", (float, NoneType), None, "the penalty").takes
            'a number, or none'
        """
        return ", or ".join(_takes(kind, may_be_none=NoneType in self.kinds) for kind in self.kinds)

    def parse(self, text: str) -> Any:
        """The value that a text means.

        Examples:
            >>> LearnerOption("hidden", (Sequence[int],), (128,), "widths").parse("128,64")
            (128, 64)

        Raises:
            ValueError: none of its kinds.
        """
        for kind in sorted(self.kinds, key=lambda kind: kind is not NoneType):  # "none" is an empty list otherwise
            with suppress(ValueError):
                return _parse(text.strip(), kind)
        raise ValueError(f"must be {self.takes}; got {text!r}")


def about(learner: str) -> str:
    """The first sentence of a learner's docstring."""
    return (getdoc(_kind(learner)) or "").split("\n\n")[0].replace("\n", " ")


def options_of(learner: str) -> dict[str, LearnerOption]:
    """The options of a learner that can be written on a command line, by name."""
    kind = _kind(learner)
    hints, words = get_type_hints(kind.__init__), _arguments(getdoc(kind) or "")
    found = {}
    for name, parameter in signature(kind).parameters.items():
        kinds = _writable(hints[name])
        if set(kinds) - {NoneType}:
            found[name] = LearnerOption(name, kinds, parameter.default, words.get(name, ""))
    return found


def chosen_learners(names: Sequence[str], loss: str, *, labels_of_bags: bool) -> list[str]:
    """The learners that are named, each once, "auto" by what it compares for a table and this loss.

    Raises:
        ValueError: another name.
    """
    from kofn.estimators._count_classifier import auto_learners
    from kofn.estimators._mil_classifier import ATTENTION

    found: list[str] = []
    for name in (name.strip() for name in names):
        if name not in ("auto", *NAMES):
            raise ValueError(f"--learner must be auto, or some of {', '.join(NAMES)} with commas; got {name!r}.")
        pools = loss in ATTENTION
        auto = auto_learners(is_table=True, pools=pools, labels_of_bags=labels_of_bags)
        found += auto if name == "auto" else [name]
    return list(dict.fromkeys(found))


def make_learners(names: Sequence[str], settings: Sequence[str], **more: Mapping[str, Any]) -> dict[str, Any]:
    """Learners with the options that are set, checked before anything is read.

    Args:
        names: of the learners.
        settings: entries NAME=VALUE, for all of these that have such an option, or LEARNER.NAME=VALUE for one.
        **more: further options by learner, that are no text.

    Raises:
        ValueError: no such learner; no such option; a value of another type, or out of range.
    """
    chosen: dict[str, dict[str, Any]] = {name: {} for name in names}
    for entry in settings:
        key, equals, text = entry.partition("=")
        owner, dot, name = key.strip().rpartition(".")
        if not equals or not name:
            raise ValueError(f"--set must be NAME=VALUE, such as rounds=200; got {entry!r}. See: kofn learners.")
        if dot and owner not in names:
            raise ValueError(f"--set {entry}: {owner!r} is not among the learners here: {', '.join(names)}.")
        meant = [owner] if dot else names
        having = [one for one in meant if name in options_of(one)]
        if not having:
            raise ValueError(f"--set {entry}: {_no_such_option(name, meant)}")
        for one in having:
            with _saying(f"--set {entry}: {name} of {one}", f". See: kofn learners {one}."):
                chosen[one][name] = options_of(one)[name].parse(text)
    made = {name: _kind(name)(**chosen[name], **more.get(name, {})) for name in names}
    for name, learner in made.items():
        with _saying(f"--set, {name}:"):
            learner.require_options()
    return made


def written(value: Any) -> str:
    """A value as `--set` takes it.

    Examples:
        >>> written((128, 64)), written(None), written(0.06)
        ('128,64', 'none', '0.06')
    """
    if isinstance(value, (list, tuple)):
        return ",".join(map(written, value)) or "none"
    return "none" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


@contextmanager
def _saying(before: str, after: str = "") -> Iterator[None]:
    """Add where a value stands to what is wrong with it."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise ValueError(f"{before} {error}{after}") from None


def _kind(learner: str) -> Callable[..., Any]:
    from kofn.estimators._count_classifier import LEARNERS

    return LEARNERS[learner]


def _no_such_option(name: str, learners: Sequence[str]) -> str:
    known = [option for learner in learners for option in options_of(learner)]
    close = difflib.get_close_matches(name, known, n=1)
    cure = f"Did you mean {close[0]!r}?" if close else f"There are {', '.join(dict.fromkeys(known))}."
    has = "has" if len(learners) == 1 else "have"
    return f"{' and '.join(learners)} {has} no option {name!r}. {cure} See: kofn learners {learners[0]}."


def _arguments(docstring: str) -> dict[str, str]:
    """What a docstring in Google's style says of each argument.

    Examples:
        >>> lines = ["A thing.", "", "Args:", "    lr: learning", "        rate.", "    l1: penalty.", "", "More."]
        >>> _arguments(chr(10).join(lines))
        {'lr': 'learning rate.', 'l1': 'penalty.'}
    """
    _, _, section = docstring.partition("\nArgs:\n")
    found: dict[str, str] = {}
    name = ""
    for line in section.split("\n\n")[0].split("\n"):
        start = re.match(r" {4}(\w+): (.*)", line)
        if start:
            name = start[1]
        found[name] = start[2] if start else f"{found[name]} {line.strip()}"
    return found


def _writable(hint: Any) -> tuple[Any, ...]:
    """The members of a type that can be written as text; None last."""
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    known = [kind for kind in members if kind in (bool, int, float) or get_origin(kind) in (Literal, Sequence)]
    return (*known, *([NoneType] if NoneType in members else []))


def _takes(kind: Any, *, may_be_none: bool) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    if get_origin(kind) is Sequence:
        listed = f"{'integers' if get_args(kind) == (int,) else 'numbers'} separated by commas"
        return listed if may_be_none else f"{listed}, or none for an empty list"
    return {bool: "true or false", int: "an integer", float: "a number", NoneType: "none"}[kind]


def _parse(text: str, kind: Any) -> Any:
    if kind is NoneType:
        if text.lower() == "none":
            return None
    elif kind is bool:
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
    elif kind is int:
        return int(text)
    elif kind is float:
        if isfinite(float(text)):
            return float(text)
    elif get_origin(kind) is Literal:
        if text in get_args(kind):
            return text
    elif text.lower() == "none":
        return ()
    else:
        return tuple(_parse(part.strip(), get_args(kind)[0]) for part in text.split(","))
    raise ValueError(text)
