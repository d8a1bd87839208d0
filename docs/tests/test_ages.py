"""How old the records of a page are is counted in the history, and nothing is said where that is not possible."""

from __future__ import annotations

import json
import re
from pathlib import Path

import ages
import pytest

from bench.record import SPEAKS_OF, git

ROOT = Path(__file__).parents[2]
CITED = re.compile(r"bench/(\w+)\.(?:md|jsonl?)\b")


def committed(folder: Path, path: str, text: str) -> str:
    """Write a file and commit it; the commit."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)
    git("add", ".", folder=folder)
    git("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", "commit", "-qm", path, folder=folder)
    return git("rev-parse", "--short", "HEAD", folder=folder)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git("init", "-q", folder=tmp_path)
    committed(tmp_path, "src/kofn/counts/a.py", "1")
    return tmp_path


def test_commits_since_are_those_of_the_code_that_a_record_is_about(repository: Path) -> None:
    first = committed(repository, "bench/latest.json", "{}")
    assert ages.of_bench("latest", repository) == (
        f"*Recorded in commit `{first}`; no commit has changed `native` or `src/kofn/counts` since.*"
    )
    committed(repository, "docs/index.md", "a page")
    committed(repository, "native/a.cpp", "1")
    committed(repository, "src/kofn/counts/a.py", "2")
    ages.of_bench.cache_clear()
    assert "; 2 commits have changed `native` or" in ages.of_bench("latest", repository)
    second = committed(repository, "bench/scaling.json", json.dumps({"commit": f"{first}+"}))  # with other changes
    assert ages.of_bench("scaling", repository).startswith(f"*Measured at commit `{first}+`; 2 commits have")
    third = committed(repository, "bench/scale.json", json.dumps({"commit": "unknown"}))
    assert f"Recorded in commit `{third}`; no commit has" in ages.of_bench("scale", repository)
    runs = "".join(json.dumps({"seed": seed, "commit": each}) + "\n" for seed, each in enumerate((first, second)))
    committed(repository, "bench/intervals.jsonl", runs)
    committed(repository, "bench/intervals.json", json.dumps({"commit": second}))  # made again from the same runs
    assert ages.of_bench("intervals", repository).startswith(f"*Measured from commit `{first}`; no commit has")
    committed(repository, "paper/results/llp.jsonl", "")
    committed(repository, "src/kofn/losses/a.py", "1")
    assert "one commit has changed `native`, " in ages.of_paper("llp", repository)
    assert second != third


def test_nothing_is_said_without_the_history(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    committed(repository, "bench/latest.json", "{}")
    committed(repository, "bench/scale.json", json.dumps({"commit": "1234567"}))  # not of this history
    assert ages.of_bench("latest", repository)
    assert ages.of_bench("scale", repository) == ""
    assert ages.of_bench("cold", repository) == ""  # no record
    clone = tmp_path_factory.mktemp("clones") / "shallow"
    git("clone", "-q", "--depth", "1", repository.as_uri(), str(clone))
    assert (clone / "bench" / "latest.json").exists()
    assert ages.of_bench("latest", clone) == ""
    bare = tmp_path_factory.mktemp("no-git")
    (bare / "bench").mkdir()
    (bare / "bench" / "latest.json").write_text("{}")
    assert ages.of_bench("latest", bare) == ""


def test_the_sentence_stands_below_a_table_and_where_a_page_asks_for_it() -> None:
    page = 'a\n--8<-- "bench/cold.md:speed"\n\n<!-- age: fuzz -->\nb'
    told = ages.on_page_markdown(page)
    assert told == f'a\n--8<-- "bench/cold.md:speed"\n\n{ages.of_bench("cold")}\n\n{ages.of_bench("fuzz")}\nb'
    with pytest.raises(KeyError):
        ages.on_page_markdown("<!-- age: no_such_record -->")


def test_every_record_is_about_some_code() -> None:
    records = {path.stem for suffix in ("json", "jsonl") for path in (ROOT / "bench").glob(f"*.{suffix}")}
    assert set(SPEAKS_OF) == records
    for folders in SPEAKS_OF.values():
        assert all((ROOT / folder).is_dir() for folder in folders)


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.name)
def test_a_page_that_cites_a_record_says_how_old_it_is(page: Path) -> None:
    text = page.read_text()
    dated = set(re.findall(r'^--8<-- "bench/(\w+)\.md|^<!-- age: (\w+) -->$', text, flags=re.M))
    assert set(CITED.findall(text)) <= {name for pair in dated for name in pair if name}
    made = re.findall(r"^<!-- (?:speed|scale|evidence): \w+ -->$", text, flags=re.M)
    assert dated or not made or "benchmarks.md" in text  # which has the tables
