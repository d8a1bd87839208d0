"""Label proportions in a pandas DataFrame: who votes yes, learnt from the result of each county.

A table has a row for each voter and a column for their county. How a person voted is secret; what the county published
is the share of yes. `LLPClassifier` learns from those shares how *people* vote: the loss is -log P(S = the county's
count), and `groups` says who belongs together.

The voters are generated, so that the secret votes can be compared at the end. They depend on three columns, one of
them nonlinearly, and on the mood of the county, which no column shows. The same boosted trees learn from

    every vote         ordinary classification: what could be reached
    the count          the count loss
    the proportion     cross-entropy of the mean prediction and the share
    a soft label       each voter gets the county's share as if it were their own label

and are scored on counties that they never saw. The last row looks at those counties once their results are out:
`posterior_proba` is P(vote | columns, result of the county), and it does know the mood.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from _picture import BLUE, INK, ORANGE, plt, save
from sklearn.metrics import log_loss, roc_auc_score

import kofn

COLUMNS = ["age", "income", "schooling"]
COUNTIES, HELD_OUT, SEEDS = 240, 120, 3


def voters(counties: int, seed: int) -> pd.DataFrame:
    """A row for each of 10 to 40 voters in each county, with the secret vote and the published share."""
    rng = np.random.default_rng(seed)
    county = np.repeat(np.arange(counties), rng.integers(10, 41, counties))
    people = rng.normal(size=(counties, 3))[county] * 0.6 + rng.normal(size=(len(county), 3)) * 0.8
    frame = pd.DataFrame(people, columns=COLUMNS)
    mood = rng.normal(size=counties)[county] * 0.7
    score = 1.5 * frame["schooling"] - 1.5 * frame["age"].abs() + frame["income"] + 1 + mood
    frame["county"] = [f"county {i:03d}" for i in county]
    frame["vote"] = (rng.random(len(frame)) < 1 / (1 + np.exp(-score))).astype(int)
    frame["share"] = frame.groupby("county")["vote"].transform("mean")
    return frame


def measure(seed: int, *, counties: int = COUNTIES) -> pd.DataFrame:
    """Instance AUC and log loss of each way to learn, on held-out counties."""
    learn, held = voters(counties, seed), voters(HELD_OUT, 1000 + seed)
    x, county, share = learn[COLUMNS], learn["county"], learn["share"]
    models = {
        "every vote": kofn.LLPClassifier(random_state=seed).fit(x, learn["vote"]),
        "the count": kofn.LLPClassifier(random_state=seed).fit(x, share, groups=county),
        "the proportion": kofn.LLPClassifier(loss="proportion", random_state=seed).fit(x, share, groups=county),
        "a soft label": kofn.LLPClassifier(rounding="spread", random_state=seed).fit(x, share),
    }
    guesses = {name: model.predict_proba(held[COLUMNS])[:, 1] for name, model in models.items()}
    posterior = models["the count"].posterior_proba(held[COLUMNS], held["share"], groups=held["county"])
    guesses["the count, then the result"] = posterior[:, 1]
    truth = held["vote"]
    return pd.DataFrame(
        {name: {"AUC": roc_auc_score(truth, p), "log loss": log_loss(truth, p)} for name, p in guesses.items()}
    ).T


def draw(table: pd.DataFrame, error: pd.DataFrame) -> None:
    """Both measures of each way to learn, with a standard error."""
    figure, axes = plt.subplots(2, 1, figsize=(5.2, 4.4))
    place = np.arange(len(table))[::-1]
    colours = [INK, BLUE, ORANGE, ORANGE, BLUE]
    for panel, measured in zip(axes, table.columns, strict=True):
        panel.errorbar(table[measured], place, xerr=error[measured], fmt="none", ecolor=colours, elinewidth=2)
        panel.scatter(table[measured], place, color=colours, s=45, zorder=3)
        panel.set_yticks(place, table.index)
        panel.grid(axis="x")
    axes[0].set_title("AUC of voters (more is better)")
    axes[1].set_title("log loss of voters (less is better)")
    save(figure, "llp_dataframe")


def main() -> None:
    """Learn over several seeds, print the table, draw it."""
    print(voters(COUNTIES, 0).drop(columns="vote").round(2).head(3).to_string(index=False), "\n")
    runs = pd.concat([measure(seed) for seed in range(SEEDS)], keys=range(SEEDS))
    by_way = runs.groupby(level=1, sort=False)
    table, error = by_way.mean(), by_way.sem()
    print(f"voters of {HELD_OUT} held-out counties; means (standard errors) of {SEEDS} seeds")
    print(f"{'learnt from':<28}{'AUC':>16}{'log loss':>16}")
    for way in table.index:
        cells = [f"{table.loc[way, column]:.3f} ({error.loc[way, column]:.3f})" for column in table]
        print(f"{way:<28}{cells[0]:>16}{cells[1]:>16}")
    draw(table, error)


if __name__ == "__main__":
    main()
