"""A linear fit with a bag effect on counties of two groups, against an independent maximiser of the same likelihood.

Each county j has n_1 and n_2 people of two groups and k votes; a vote of group g has log-odds b_g + u_j, where u_j is
normal with standard deviation sigma. The maximiser computes

    P(S = k) = int phi(u / sigma) / sigma  P(S = k | u) du,    P(S = k | u) by its characteristic function,

with numpy alone, around the mode of each integrand, and climbs from many starts (scipy's Nelder-Mead), sigma included.
Give a table with the columns precinct, people, yes and race, one row for each county and group, such as King's matproii
of the R package ei: python -m bench.two_groups TABLE [LARGEST]
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize

Floats = NDArray[np.float64]
NODES, FREQUENCIES = 61, 96
STARTS = 8
RECORD = Path(__file__).with_name("two_groups.json")


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def log_likelihood(parameters: Floats, people: Floats, votes: Floats) -> float:
    """The sum over counties, from (b_1, b_2, log sigma), people (j, 2) and votes (j,)."""
    logits, sigma = parameters[:2], float(np.exp(parameters[2]))
    modes, spreads = np.empty(len(votes)), np.empty(len(votes))
    for j, (n, k) in enumerate(zip(people, votes, strict=True)):

        def slope(u: float, n: Floats = n, k: float = k) -> float:
            return float(k - n @ sigmoid(logits + u) - u / sigma**2)

        modes[j] = brentq(slope, -60.0, 60.0)
        p = sigmoid(logits + modes[j])
        spreads[j] = 1 / np.sqrt(n @ (p * (1 - p)) + 1 / sigma**2)
    t = np.linspace(-9, 9, NODES)
    u = modes[:, None] + spreads[:, None] * t  # (j, nodes)
    p = sigmoid(logits + u[..., None])  # (j, nodes, 2)
    n = people[:, None, :]
    sd = np.sqrt((n * p * (1 - p)).sum(-1))
    theta = np.linspace(0, 1, FREQUENCIES) * np.minimum(9 / np.maximum(sd, 0.5), np.pi)[..., None]
    z = np.exp(1j * theta)
    log_phi = sum(people[:, g, None, None] * np.log1p(p[..., g, None] * (z - 1)) for g in range(2))
    integrand = np.exp(log_phi - 1j * theta * votes[:, None, None]).real
    step = theta[..., 1]
    trapezoid = integrand.sum(-1) - 0.5 * (integrand[..., 0] + integrand[..., -1])
    probability = np.maximum(trapezoid * step / np.pi, 1e-300)
    log_normal = -0.5 * (u / sigma) ** 2 - np.log(sigma * np.sqrt(2 * np.pi))
    total = (probability * np.exp(log_normal)).sum(1) * spreads * (t[1] - t[0])
    return float(np.log(np.maximum(total, 1e-300)).sum())


def maximum(people: Floats, votes: Floats) -> dict[str, Any]:
    """The best of climbs from many starts."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(STARTS):
        start = np.array([*rng.normal(scale=2, size=2), rng.normal(scale=0.7)])
        climb = minimize(
            lambda x: -log_likelihood(x, people, votes),
            start,
            method="Nelder-Mead",
            options={"xatol": 1e-5, "fatol": 1e-6, "maxiter": 2000},
        )
        found.append((float(-climb.fun), climb.x))
    found.sort(key=lambda pair: -pair[0])
    best, x = found[0]
    near = sum(value > best - 1e-3 for value, _ in found)
    return {"log_likelihood": best, "logits": x[:2].tolist(), "sigma": float(np.exp(x[2])), "starts_that_agree": near}


def ours(table: Any, groups: Any) -> dict[str, Any]:
    import kofn

    learner = kofn.Linear(l2=0.0)
    model = kofn.LLPClassifier(learner, label="count", bag_effect="fit", random_state=0)
    model.fit(table[["race"]], table["yes"], groups=table.precinct, copies=table.people.values)
    return {
        "logits": model.decision_function(groups).tolist(),
        "sigma": model.bag_effect_,
        "probability": model.predict_proba(groups)[:, 1].tolist(),
    }


def main(path: str, largest: float = np.inf) -> None:
    import pandas as pd

    table = pd.read_csv(path)
    table = table[table.groupby("precinct").people.transform("sum") <= largest]
    races = sorted(table.race.unique())
    wide = table.pivot_table(index="precinct", columns="race", values="people", aggfunc="sum").fillna(0)[races]
    people = wide.to_numpy(np.float64)
    votes = table.groupby("precinct").yes.first().loc[wide.index].to_numpy(np.float64)
    start = time.perf_counter()
    mine = ours(table, pd.DataFrame({"race": races}))
    seconds = time.perf_counter() - start
    theirs = maximum(people, votes)
    at_ours = log_likelihood(np.array([*mine["logits"], np.log(mine["sigma"])]), people, votes)
    difference = np.abs(sigmoid(np.array(mine["logits"])) - sigmoid(np.array(theirs["logits"])))
    record = {
        "table": Path(path).name,
        "counties": len(votes),
        "people": int(people.sum()),
        "groups": races,
        "kofn": mine | {"log_likelihood": at_ours, "seconds": round(seconds, 1)},
        "maximiser": theirs,
        "largest_difference_of_a_probability": float(difference.max()),
    }
    records = json.loads(RECORD.read_text()) if RECORD.exists() else []
    kept = [one for one in records if (one["table"], one["counties"]) != (record["table"], record["counties"])]
    RECORD.write_text(json.dumps([*kept, record], indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main(sys.argv[1], *map(float, sys.argv[2:]))
