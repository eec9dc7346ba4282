"""One HTML page that opens by itself: figures inside, nothing fetched, everything escaped."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from pathlib import Path

from corginet.report.table import Table

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
       color: #1b1b1b; background: #fff }
h1 { font-size: 1.7rem } h2 { font-size: 1.2rem; margin-top: 2.2rem }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: right; padding: .35rem .6rem; border-bottom: 1px solid #ddd }
th:first-child, td:first-child { text-align: left }
img { max-width: 100% } .note { color: #555 }
"""


class Page:
    """A page that grows part by part."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.parts: list[str] = [f"<h1>{html.escape(title)}</h1>"]

    def text(self, text: str) -> None:
        self.parts.append(f"<p>{html.escape(text)}</p>")

    def heading(self, text: str) -> None:
        self.parts.append(f"<h2>{html.escape(text)}</h2>")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell(v))}</td>" for v in row) + "</tr>"
            for row in rows
        )
        self.parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")

    def show(self, table: Table) -> None:
        """A table with its marks and notes."""
        self.parts.append(table.as_html())

    def image(self, path: Path, alt: str) -> None:
        data = base64.b64encode(path.read_bytes()).decode()
        alt = html.escape(alt, quote=True)
        self.parts.append(f'<img src="data:image/png;base64,{data}" alt="{alt}">')

    def render(self) -> str:
        policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
            f"<title>{html.escape(self.title)}</title><style>{STYLE}</style></head>"
            f"<body>{''.join(self.parts)}</body></html>\n"
        )


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
