"""What the models of the guides have learned, beside what nobody told them."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import torch
from drawing import WIDTH, Look
from matplotlib.figure import Figure
from page_code import after

import kofn

DOTS = {"s": 7, "linewidths": 0}


def at_least_one(look: Look) -> Figure:
    """The probability of each instance, learned from labels of bags of three."""
    names = after("guides/at-least-one", 1)
    x, learned = names["X"][:, 0], names["model"].predict_proba(names["X"])[:, 1]
    return _against_truth(look, x, learned, names["chance"], "learned from “at least one of three”")


def proportions(look: Look) -> Figure:
    """The probability of each instance, learned from shares of bags of eight."""
    names = after("guides/proportions", 1)
    x, learned = names["X"][:, 0], names["model"].predict_proba(names["X"])[:, 1]
    return _against_truth(look, x, learned, names["chance"], "learned from shares of bags of eight")


def _against_truth(look: Look, x: np.ndarray, learned: np.ndarray, chance: np.ndarray, words: str) -> Figure:
    figure, axes = plt.subplots(figsize=(WIDTH, 2.9))
    axes.scatter(x, learned, color=look.model, label=words, **DOTS)
    order = x.argsort()
    axes.plot(x[order], chance[order], color=look.label, label="the truth, which nobody told")
    axes.set(xlabel="first feature", ylabel="P(positive)", ylim=(-0.02, 1.02))
    axes.legend(loc="upper left", markerscale=2)
    return figure


def boosting(look: Look) -> Figure:
    """A threshold in one column that switches another on."""
    names = after("guides/boosting", 1)
    x, learned = names["X"], torch.sigmoid(torch.from_numpy(names["scores"])).numpy()
    figure, (left, right) = plt.subplots(1, 2, figsize=(WIDTH, 2.8), sharey=True)
    for axes, part, title in (
        (left, x[:, 1] <= -0.5, "second column below -0.5"),
        (right, x[:, 1] > -0.5, "second column above -0.5"),
    ):
        order = x[part, 0].argsort()
        axes.scatter(x[part, 0], learned[part], color=look.model, label="LightGBM, from counts", **DOTS)
        axes.plot(x[part, 0][order], names["chance"][part][order], color=look.label, label="the truth")
        axes.set(xlabel="first column", title=title, ylim=(-0.02, 1.02))
    left.set_ylabel("P(positive)")
    left.legend(loc="upper left", markerscale=2, fontsize=9)
    return figure


def dataframe(look: Look) -> Figure:
    """Two regions with two ages at which people begin to vote."""
    names = after("guides/dataframe", 1)
    people, learned = names["people"], names["model"].predict_proba(names["X"])[:, 1]
    figure, axes = plt.subplots(figsize=(WIDTH, 2.9))
    ages = np.linspace(10, 95, 200)
    for region, middle, colour, marker in (("north", 40, look.model, "o"), ("south", 60, look.label, "D")):
        part = (people["region"] == region).to_numpy()
        axes.scatter(
            people["age"][part], learned[part], color=colour, marker=marker, label=f"learned, {region}", **DOTS
        )
        axes.plot(ages, 1 / (1 + np.exp((middle - ages) / 3)), color=colour, linewidth=1.2, label=f"truth, {region}")
    axes.set(xlabel="age", ylabel="P(votes)", ylim=(-0.02, 1.02))
    axes.legend(loc="upper left", markerscale=2, fontsize=9)
    return figure


def learners(look: Look) -> Figure:
    """The same people by trees and by a linear model, which has no step to offer."""
    names = after("guides/learners", 1)
    people = names["people"]
    line = kofn.LLPClassifier("linear", random_state=0).fit(people, names["turnout"], groups=names["wards"])
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 2.8), sharey=True)
    for place, model, title in zip(axes, (names["model"], line), ("trees", "a linear model"), strict=True):
        learned = model.predict_proba(people)[:, 1]
        for region, colour, marker in (("north", look.model, "o"), ("south", look.label, "D")):
            part = (people["region"] == region).to_numpy()
            place.scatter(people["age"][part], learned[part], color=colour, marker=marker, label=region, **DOTS)
        for age in (40, 60):
            place.axvline(age, color=look.ink, linestyle=":", linewidth=1)
        place.set(xlabel="age; dotted: the true thresholds", title=title, ylim=(-0.02, 1.02))
    axes[0].set_ylabel("P(votes)")
    axes[1].legend(loc="upper left", markerscale=2)
    return figure


def one_sided(look: Look) -> Figure:
    """Scores of the unlabelled, split by a truth that nobody told, above those of the labelled."""
    names = after("guides/one-sided", 1)
    score, truth, labelled = names["model"].predict_proba(names["X"])[:, 1], names["truth"], names["labelled"]
    figure, axes = plt.subplots(2, 1, figsize=(WIDTH, 3.4), sharex=True)
    bins = np.linspace(0, 1, 26)
    axes[0].hist(score[labelled], bins, color=look.label, label="labelled positives")
    hidden = [score[truth & ~labelled], score[~truth]]
    axes[1].hist(
        hidden,
        bins,
        stacked=True,
        color=[look.third, look.fourth],
        label=["unlabelled, in truth positive", "unlabelled, in truth negative"],
    )
    for place in axes:
        place.set_ylabel("rows")
        place.legend(loc="upper center")
    axes[1].set_xlabel("predicted probability")
    return figure


def several_classes(look: Look) -> Figure:
    """The predicted distribution of the count of each class in one bag, and what was counted."""
    names = after("guides/several-classes", 2)
    figure, axes = plt.subplots(1, 3, figsize=(WIDTH, 2.5), sharey=True)
    chances = names["pmf"]
    bag = int(np.argmin((chances**2).sum((1, 2))))  # the one of which the model is least sure
    for number, (place, colour) in enumerate(zip(axes, (look.model, look.third, look.fourth), strict=True)):
        place.bar(range(7), chances[bag, number], color=colour, width=0.8)
        known = int(names["counts"][bag, number])
        place.axvline(known, color=look.label, linestyle="--", linewidth=1.6)
        place.set(title=f"class {number}: counted {known}", xlabel="k", xticks=range(7), ylim=(0, 1.02))
    axes[0].set_ylabel("P(K = k)")
    return figure


def intervals(look: Look) -> Figure:
    """P(vote | age) with its intervals, and the truth."""
    names = after("guides/intervals", 1)
    found = list(dict.fromkeys(names["age"]))
    order = sorted(range(3), key=lambda i: found[i])
    mean, low, high = (np.asarray(names[key])[order] for key in ("mean", "low", "high"))
    truth = [names["truth"][names["age"] == found[i]].mean() for i in order]
    figure, axes = plt.subplots(figsize=(WIDTH, 2.6))
    axes.errorbar(
        mean, range(3), xerr=[mean - low, high - mean], fmt="o", color=look.model, capsize=5, label="90 % interval"
    )
    axes.scatter(truth, range(3), color=look.label, marker="D", s=40, zorder=3, label="the truth")
    axes.set(xlabel="P(vote | age)", xlim=(0, 1), yticks=range(3), ylim=(-0.6, 2.6))
    axes.set_yticklabels([found[i] for i in order])
    axes.legend(loc="lower right")
    return figure


FIGURES = {
    "guide-at-least-one": at_least_one,
    "guide-boosting": boosting,
    "guide-dataframe": dataframe,
    "guide-intervals": intervals,
    "guide-learners": learners,
    "guide-one-sided": one_sided,
    "guide-proportions": proportions,
    "guide-several-classes": several_classes,
}
