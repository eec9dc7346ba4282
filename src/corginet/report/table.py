"""One table as text, Markdown, LaTeX, JSON and HTML."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

Mark = Literal["", "best", "second"]
MEANING = "± one standard error; * p < 0.05, ** p < 0.001"
_TEX = str.maketrans(
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "±": r"$\pm$", "−": "-", "ε": r"$\epsilon$"}
    | {"↑": r"$\uparrow$", "↓": r"$\downarrow$", "≤": r"$\le$", "×": r"$\times$", "—": "--"}
)


@dataclass(frozen=True)
class Cell:
    """A number with its standard error, its stars, and its place among the others."""

    value: float | None
    error: float | None = None
    stars: str = ""
    mark: Mark = ""
    digits: int = 4

    @property
    def text(self) -> str:
        if self.value is None:
            return "—"
        error = "" if self.error is None else f" ± {self.error:.{self.digits}f}"
        return f"{self.value:.{self.digits}f}{error}"


@dataclass(frozen=True)
class Table:
    """Named columns and rows of texts and numbers, with notes below."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    notes: Sequence[str] = ()
    records: Sequence[dict[str, Any]] = field(default_factory=list)

    @property
    def marked(self) -> bool:
        """Whether any cell is best or second."""
        return any(isinstance(c, Cell) and c.mark for row in self.rows for c in row)

    def as_text(self) -> str:
        body = [[_plain(cell) for cell in row] for row in self.rows]
        lines = [list(self.columns), *body]
        widths = [max(len(line[n]) for line in lines) for n in range(len(self.columns))]
        shown = [_aligned(line, widths) for line in lines]
        rule = "-" * len(shown[0])
        return (
            "\n".join(
                [self.title, "", shown[0], rule, *shown[1:], "", *self._notes("[best], _second_")]
            )
            + "\n"
        )

    def as_markdown(self) -> str:
        head = "| " + " | ".join(_markdown(c) for c in self.columns) + " |"
        rule = "|" + "---|" + "---:|" * (len(self.columns) - 1)
        body = ["| " + " | ".join(_markdown(cell) for cell in row) + " |" for row in self.rows]
        notes = [_markdown(note) for note in self._notes("bold: best, underlined: second")]
        title = f"**{_markdown(self.title)}**"
        return "\n".join([title, "", head, rule, *body, "", *notes]) + "\n"

    def as_latex(self) -> str:
        lines = [" & ".join(_latex(cell) for cell in row) + r" \\" for row in self.rows]
        head = " & ".join(_latex(c) for c in self.columns) + r" \\"
        notes = " ".join(_latex(note) for note in self._notes("Bold: best, underlined: second"))
        return "\n".join(
            [
                r"\begin{table}[t]\centering",
                rf"\caption{{{_latex(self.title)}. {notes}}}",
                rf"\begin{{tabular}}{{@{{}}l{'r' * (len(self.columns) - 1)}@{{}}}}",
                r"\toprule",
                head,
                r"\midrule",
                *lines,
                r"\bottomrule",
                r"\end{tabular}",
                r"\end{table}",
                "",
            ]
        )

    def as_json(self) -> str:
        about = {"title": self.title, "rows": self.as_records(), "notes": list(self.notes)}
        return json.dumps(about, indent=1, default=str) + "\n"

    def as_records(self) -> list[dict[str, Any]]:
        """The rows as named values: those given, or the columns' own."""
        if self.records:
            return list(self.records)
        return [{c: _value(v) for c, v in zip(self.columns, row, strict=True)} for row in self.rows]

    def as_html(self) -> str:
        """A table element; everything in it is escaped."""
        head = "".join(f"<th>{html.escape(c)}</th>" for c in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{_html(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        notes = [html.escape(note) for note in self._notes("Bold: best, underlined: second")]
        below = "".join(f'<p class="note">{note}</p>' for note in notes)
        head = f"<thead><tr>{head}</tr></thead>"
        return f"<table>{head}<tbody>{body}</tbody></table>{below}"

    def _notes(self, marks: str) -> list[str]:
        """What the marks mean, where there are any, and the table's own notes."""
        return [*([f"{marks}; {MEANING}"] if self.marked else []), *self.notes]


def save(table: Table, folder: Path, name: str) -> list[Path]:
    """The table in every form; HTML as a page of its own."""
    from corginet.report.page import Page

    page = Page(table.title)
    page.show(table)
    forms: dict[str, Callable[[], str]] = {
        "txt": table.as_text,
        "md": table.as_markdown,
        "tex": table.as_latex,
        "json": table.as_json,
        "html": page.render,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, render in forms.items():
        (folder / f"{name}.{suffix}").write_text(render(), encoding="utf-8")
    return [folder / f"{name}.{suffix}" for suffix in forms]


def _text(cell: object) -> str:
    if isinstance(cell, Cell):
        return cell.text
    if cell is None:
        return "—"
    return f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _value(cell: object) -> object:
    return cell.value if isinstance(cell, Cell) else cell


def _decorated(cell: object, shown: str, best: str, second: str, stars: str) -> str:
    """Put the form of the cell's mark around what is shown, and that of its stars behind."""
    if not isinstance(cell, Cell):
        return shown
    form = {"best": best, "second": second, "": "{}"}[cell.mark]
    return form.replace("{}", shown) + (stars.replace("{}", cell.stars) if cell.stars else "")


def _plain(cell: object) -> str:
    return _decorated(cell, _text(cell), "[{}]", "_{}_", " {}")


def _markdown(cell: object) -> str:
    shown = _text(cell).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")
    shown = shown.replace("<", "&lt;").replace("*", "\\*")
    decorated = _decorated(cell, shown, "**{}**", "<u>{}</u>", "<sup>{}</sup>")
    return re.sub(r"(?<=<sup>)\*+", lambda found: found[0].replace("*", "\\*"), decorated)


def _latex(cell: object) -> str:
    shown = _text(cell).translate(_TEX)
    return _decorated(cell, shown, r"\textbf{{}}", r"\underline{{}}", "$^{{}}$")


def _html(cell: object) -> str:
    shown = html.escape(_text(cell), quote=True)
    return _decorated(cell, shown, "<b>{}</b>", "<u>{}</u>", "<sup>{}</sup>")


def _aligned(line: Sequence[str], widths: Sequence[int]) -> str:
    first = line[0].ljust(widths[0])
    return "  ".join([first, *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))])
