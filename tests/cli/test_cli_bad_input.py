"""Bad input: one line on stderr with what, where and the cure; exit code 2; nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest
import table_data
from typer.testing import CliRunner

from kofn.cli import app

FIT = "fit llp t.csv --bag bag --features x -o m"

CASES = {
    "missing file": ("fit llp tt.csv --bag bag --label count -o m", "tt.csv: there is no such file; t.csv is there"),
    "missing bag column": ("fit llp t.csv --bag county --label count -o m", "t.csv has no column 'county'"),
    "typo in a column": ("fit llp t.csv --bag bag --label proportoin -o m", "Did you mean 'proportion'?"),
    "typo in a feature": ("fit llp t.csv --bag bag --label count --features X,colour -o m", "no column 'X'"),
    "typo in a drop": ("fit llp t.csv --bag bag --label count --drop color -o m", "Did you mean 'colour'?"),
    "bag with two labels": ("fit llp two.csv --bag bag --label count -o m", "bag 'b000' has two labels"),
    "proportion 1.2": (
        "fit llp above.csv --bag bag --label proportion -o m",
        "column 'proportion': `proportions` must lie between 0 and 1; bag 'b000' has 1.2",
    ),
    "count above size": (
        "fit llp above.csv --bag bag --label count -o m",
        "bag 'b000' has 4 instances and the count 5",
    ),
    "empty file": ("fit llp empty.csv --bag bag --label count -o m", "empty.csv is empty"),
    "header only": ("fit llp header.csv --bag bag --label count -o m", "header.csv has a header and no rows"),
    "label is a feature": ("fit llp t.csv --bag bag --label count --features x,count -o m", "cannot be a feature"),
    "no features": ("fit llp t.csv --bag bag --label count --features x --drop x -o m", "no column to learn from"),
    "many categories": ("fit pu t.csv --label labelled --prior 0.5 --max-categories 9 -o m", "Leave it out"),
    "ambiguous label": (f"{FIT} --label some", "may be counts or proportions"),
    "three labels": (f"{FIT} --label low,high,count", "counts of classes must sum to the size of their bag"),
    "bad noise": (f"{FIT} --label noisy --noise cauchy:1", "--noise must be a distribution and its scale"),
    "bad widths": (
        f"{FIT} --label count --learner network --set hidden=8,x",
        "--set hidden=8,x: hidden of network must be integers separated by commas, or none for an empty list; got '8,x'. "
        "See: kofn learners network.",
    ),
    "bad number": (f"{FIT} --label count --set rounds=many", "rounds of trees must be an integer, or none"),
    "number out of range": (f"{FIT} --label count --set rounds=0", "--set, trees: `rounds` must be"),
    "not a setting": (
        f"{FIT} --label count --set rounds",
        "--set must be NAME=VALUE, such as rounds=200; got 'rounds'",
    ),
    "no such setting": (f"{FIT} --label count --set round=9", "trees has no option 'round'. Did you mean 'rounds'?"),
    "setting of another learner": (f"{FIT} --label count --set epochs=3", "trees has no option 'epochs'. There are"),
    "setting of a learner not here": (
        f"{FIT} --label count --set linear.l2=1",
        "'linear' is not among the learners here: trees",
    ),
    "nothing to resume": (f"{FIT} --label count --learner network --resume", "nothing to resume"),
    "no checkpoint to resume": (f"{FIT} --label count --resume", "--resume goes with --learner network"),
    "attention by trees": (
        "fit mil t.csv --bag bag --label some --features x --loss attention --learner trees -o m",
        "attention",
    ),
    "no such learner": (
        "cv llp t.csv --bag bag --label count --learner trees,forest",
        "--learner must be auto, or some of trees, linear, network with commas; got 'forest'",
    ),
    "more folds than bags": (
        "cv llp t.csv --bag bag --label count --features x --folds 61",
        "--folds must be at most the number of bags; got 61, and there are 60",
    ),
    "cross-validation of a missing column": ("cv mil t.csv --bag bag --label any", "t.csv has no column 'any'"),
    "a file in the way": (
        "fit llp t.csv --bag bag --label count -o t.csv",
        "t.csv must be free or a kofn model; it is another file",
    ),
    "prior and mixture": (
        "fit pu t.csv --label labelled --prior 0.5 --mixture 0.3 -o m",
        "may be given, and not both. With neither it is estimated.",
    ),
    "labels of mil": ("fit mil t.csv --bag bag --label count -o m", "must have two values"),
    "labels within bags": ("fit mil t.csv --bag bag --label truth --positive pos -o m", "has two labels"),
    "two labels of mil": ("fit mil t.csv --bag bag --label low,high -o m", "--label must name one column"),
    "all unlabelled": ("fit pu none.csv --label labelled --prior 0.5 -o m", "all 240 rows are unlabelled"),
    "no model": (
        "predict nowhere t.csv -o out.csv",
        "nowhere must be a file that kofn wrote a model to; there is none",
    ),
    "no model to evaluate": (
        "evaluate nowhere t.csv",
        "nowhere must be a file that kofn wrote a model to; there is none",
    ),
    "no model to show": ("info nowhere", "nowhere must be a file that kofn wrote a model to; there is none"),
    "bad output": ("predict nowhere t.csv -o out.txt", "must end in .csv"),
    "keep and bag": ("predict nowhere t.csv --keep x --bag bag -o out.csv", "Leave one of them out"),
    "truth and bag": ("evaluate nowhere t.csv --truth x --bag bag", "Leave one of them out"),
    "positive alone": ("evaluate nowhere t.csv --positive pos", "Name that column with --truth"),
    "no such data": ("data get iris", "there is no data set 'iris'"),
    "images are no table": ("data get mnist -o x.csv", "mnist has images"),
    "bags of nothing": ("data get digits --bag-size 4", "name it with -o"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bad")
    frame = table_data.make_table()
    table_data.write(frame, folder / "t.csv")
    first = frame["bag"] == "b000"
    two = frame.copy()
    two.loc[two.index[first][-1], "count"] = 4 - two.loc[two.index[first][0], "count"] + 5
    table_data.write(two, folder / "two.csv")
    above = frame.copy()
    above.loc[first, "proportion"], above.loc[first, "count"] = 1.2, 5
    table_data.write(above, folder / "above.csv")
    table_data.write(frame.assign(labelled=None), folder / "none.csv")
    (folder / "empty.csv").touch()
    table_data.write(frame.iloc[:0], folder / "header.csv")
    return folder


@pytest.mark.parametrize("case", CASES)
def test_bad_input(folder: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    command, message = CASES[case]
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 2, result.output + repr(result.exception)
    assert message in result.stderr
    assert result.stderr.startswith("kofn: ")
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_typo_is_found_before_the_rows_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("rows were read")

    monkeypatch.chdir(folder)
    monkeypatch.setattr("kofn.tables._table_file.TableFile.chunks", refuse)
    result = CliRunner().invoke(app, ["fit", "llp", "t.csv", "--bag", "bags", "--label", "count", "-o", "m"])
    assert result.exit_code == 2
    assert "Did you mean 'bag'?" in result.stderr


@pytest.mark.parametrize(
    "command", ["fit llp t.csv", "fit llp t.csv --bag b --label y -o m --loss best", "learners forest", "nonsense"]
)
def test_usage(command: str) -> None:
    assert CliRunner().invoke(app, command.split()).exit_code == 2


@pytest.mark.parametrize("words", ["--debug info nowhere", "info --debug nowhere", "info nowhere --debug"])
def test_a_traceback_is_shown_when_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch, words: str) -> None:
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(app, words.split())
    assert result.exit_code == 2
    assert result.stderr.startswith("Traceback")
    assert result.stderr.splitlines()[-1].startswith("kofn: ")
