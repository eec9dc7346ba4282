"""Did the content earn its cost? The real texts against none, random vectors and other texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from corginet.experiment.contenders import CONTROLS, Contender
from corginet.experiment.engine import Results
from corginet.experiment.summary import (
    ALL_USERS,
    LOWER_IS_BETTER,
    compare_all,
    metrics_of,
    values,
    verdict_p,
)
from corginet.recipes import recipe

GROUPS = (ALL_USERS, "D<=10", "D>10")


def with_controls(contenders: Sequence[Contender]) -> list[Contender]:
    """Every contender that reads text, followed by its three controls."""
    out = []
    for contender in contenders:
        out.append(contender)
        if recipe(contender.recipe).reads_text:
            out += [
                replace(contender, text=text, label=contender.label and f"{contender.label}:{text}")
                for text in CONTROLS
            ]
    return out


def judge_texts(results: Results) -> dict[str, Any]:
    """Per recipe and group of users, what the real texts gain over each control, and a sentence.

    A gain is positive where the real texts are better. The p-values are Holm-corrected over
    all the pairs of the group.
    """
    metric = metrics_of(results.dataset.ratings.task)[0]
    real = [c for c in results.contenders if c.text == "real" and f"{c.name}:none" in results.names]
    judged = [c.name for c in real if c.name in results.names]
    groups = {
        group: {name: _gains(_family(results, name), name, metric, group) for name in judged}
        for group in GROUPS
    }
    sentences = [_sentence(results, name, metric, groups) for name in judged]
    return {
        "text": " ".join(sentences) or "No recipe that reads texts could be compared.",
        "controls": {"metric": metric, "groups": groups},
    }


def _family(results: Results, name: str) -> Results:
    """The results of one recipe and its controls, so that corrections are over them alone."""
    wanted = {name, *(f"{name}:{text}" for text in CONTROLS)}
    return Results(
        results.dataset,
        results.journal,
        [c for c in results.contenders if c.name in wanted],
        [row for row in results.rows if row["recipe"] in wanted],
    )


def _gains(family: Results, name: str, metric: str, group: str) -> dict[str, Any]:
    """The real texts against each control: gain, p-value and how it was found."""
    sign = -1 if metric in LOWER_IS_BETTER else 1
    out = {}
    for pair in compare_all(family, [metric], group):
        if pair["a"] == name:
            p, how = verdict_p(pair)
            control = pair["b"].rsplit(":", 1)[1]
            gain = sign * pair["difference"]
            out[control] = {"gain": gain, "p": p, "test": how, "seeds": pair["seeds"]}
    return out


def _sentence(results: Results, name: str, metric: str, groups: dict[str, Any]) -> str:
    overall = groups[ALL_USERS][name]
    if not overall:
        return f"{name}: too few runs to judge the texts."
    with_texts = np.mean(list(values(results.of(name), metric).values()))
    few, many = (_part(groups[group].get(name, {}), group) for group in GROUPS[1:])
    return (
        f"{name}: the content {_verdict(overall)}: test {metric} {with_texts:.4f}, "
        f"{_closest(overall)} ({next(iter(overall.values()))['test']}); {few}; {many}; at "
        f"{_cost(results, name):.1f} times the training time without texts."
    )


def _verdict(overall: dict[str, Any]) -> str:
    if any(found["gain"] <= 0 for found in overall.values()):
        return "did not earn its cost"
    if all(found["p"] < 0.05 for found in overall.values()):
        return "earned its cost"
    return "may have helped, but the difference may be chance"


def _closest(found: dict[str, Any]) -> str:
    """The gain over the control that does best."""
    control, least = min(found.items(), key=lambda item: item[1]["gain"])
    way = "better" if least["gain"] > 0 else "worse"
    return (
        f"{abs(least['gain']):.4f} {way} than '{control}', the best control, p = {least['p']:.3g}"
    )


def _part(found: dict[str, Any], group: str) -> str:
    return f"for {group} {_closest(found)}" if found else f"no test pairs with {group}"


def _cost(results: Results, name: str) -> float:
    seconds = [
        float(np.mean([row["seconds"] for row in results.of(one)]))
        for one in (name, f"{name}:none")
    ]
    return seconds[0] / max(seconds[1], 1e-9)
