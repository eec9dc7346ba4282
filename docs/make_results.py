"""Writes docs/results.md and docs/paper.md from the rows and tables in docs/results.

    make docs

`docs/results/*.jsonl` are the rows that `corginet compare --json` printed, one per line, and
`docs/results/paper/*/*.md` tables that `corginet paper` wrote. No number here is typed by hand.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from corginet.experiment.statistics import holm, mean_and_error, paired_p
from corginet.experiment.summary import LOWER_IS_BETTER, ranked, values
from corginet.report.table import Cell, Mark, Table

DOCS = Path(__file__).parent
ROWS = DOCS / "results"
Rows = list[dict[str, Any]]


def read_rows(name: str) -> Rows:
    """The rows of one comparison."""
    lines = (ROWS / f"{name}.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def comparison(rows: Rows, title: str, metric: str, against: str, few: bool = True) -> Table:
    """A row per contender, best first; every other one tested against `against`, seed by seed."""
    names = list(dict.fromkeys(row["recipe"] for row in rows))
    of = {name: [row for row in rows if row["recipe"] == name] for name in names}
    means = {name: _mean(of[name], metric) for name in names}
    order = ranked(means, metric)
    others = [name for name in order if name != against]
    tested = [paired_p(*_paired(of[against], of[name], metric)) for name in others]
    p_values = dict(zip(others, holm(tested), strict=True))
    marks: dict[str, Mark] = dict(zip(order, ("best", "second"), strict=False))
    body = []
    for name in order:
        found = list(values(of[name], metric).values())
        cell = Cell(*mean_and_error(found), mark=marks.get(name, ""))
        gap = means[name] - means[against] if name != against else None
        p = p_values.get(name)
        line: list[object] = [name, len(found), cell, Cell(gap), "—" if p is None else f"{p:.2g}"]
        if few:
            line += [Cell(_mean(of[name], metric, group)) for group in ("D<=10", "D>10")]
        extra = [_honesty(row) for row in of[name]]
        line.append(Cell(float(np.mean(extra)) if None not in extra else None, digits=3))
        body.append(line)
    way = "lower" if metric in LOWER_IS_BETTER else "higher"
    binary = "ece" in rows[0]["test"]
    columns = ["model", "seeds", f"{metric} ({way} is better)", f"minus {against}", "p"]
    columns += ["D ≤ 10", "D > 10"] if few else []
    columns += ["calibration error" if binary else "90% interval holds"]
    return Table(title, columns, body)


def _honesty(row: dict[str, Any]) -> float | None:
    """How far stated probabilities are off, or the share of values inside the intervals."""
    return row["test"].get("ece", row.get("interval", {}).get("coverage"))


def _mean(rows: Rows, metric: str, group: str = "all") -> float | None:
    found = list(values(rows, metric, group).values())
    return float(np.mean(found)) if found else None


def _paired(a: Rows, b: Rows, metric: str) -> tuple[list[float], list[float]]:
    one, other = values(a, metric), values(b, metric)
    both = sorted(one.keys() & other.keys())
    return [one[seed] for seed in both], [other[seed] for seed in both]


def results_page(about: dict[str, Any]) -> str:
    """The comparisons that results.toml lists, with what it says of each."""
    parts = [f"# {about['title']}", about["intro"].strip()]
    for section in about["section"]:
        rows = read_rows(section["rows"])
        wanted = section.get("only")
        shown = [row for row in rows if wanted is None or row["recipe"] in wanted]
        table = comparison(
            shown, section["title"], section["metric"], section["against"], section.get("few", True)
        )
        parts += [f"## {section['title']}", section["text"].strip(), _body(table), _origin(rows)]
    return "\n\n".join(parts) + "\n"


def _origin(rows: Rows) -> str:
    """Seeds, versions and data of the rows, as every result must name them."""
    versions = sorted({f"corginet {r['versions']['corginet']}, torch {r['versions']['torch']}"
                       for r in rows})  # fmt: skip
    hashes = sorted({row["data_hash"] for row in rows})
    seeds = ", ".join(str(seed) for seed in sorted({row["seed"] for row in rows}))
    return f"*Seeds {seeds}; {'; '.join(versions)}; data {', '.join(hashes)}.*"


def _body(table: Table) -> str:
    """Markdown without the title, which the section's heading holds."""
    return table.as_markdown().split("\n", 2)[2].strip()


def paper_page(about: dict[str, Any]) -> str:
    """The paper's tables and figures as its commands wrote them, dataset by dataset."""
    parts = [f"# {about['title']}", about["intro"].strip()]
    for section in about["section"]:
        parts += [f"## {section['title']}", section["text"].strip()]
        for name in section["tables"]:
            found = (ROWS / "paper" / f"{name}.md").read_text("utf-8").strip()
            parts.append(found)
        for name in section.get("figures", []):
            parts.append(f"![{name}](results/paper/{name}.png)")
    return "\n\n".join(parts) + "\n"


def pages(names: Sequence[str] = ("results", "paper")) -> dict[Path, str]:
    """Every generated page with its content."""
    makers = {"results": results_page, "paper": paper_page}
    out = {}
    for name in names:
        about = tomllib.loads((ROWS / f"{name}.toml").read_text("utf-8"))
        out[DOCS / f"{name}.md"] = makers[name](about)
    return out


if __name__ == "__main__":
    for path, content in pages().items():
        path.write_text(content, encoding="utf-8")
        print(f"written: {path.name}")
