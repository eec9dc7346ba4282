"""corginet recipes."""

from __future__ import annotations

from corginet.cli.output import emit, table


def recipes(name: str | None = None, /, *, seed: int = 0, json: bool = False) -> None:
    """All models, or the settings of one.

    Parameters
    ----------
    name
        A recipe, to see its settings.
    seed
        Accepted everywhere; nothing is drawn here.
    json
        Print one JSON document.
    """
    from corginet.config import fields
    from corginet.recipes import LEAK_FREE, all_recipes, recipe

    if name is None:
        found = [
            {
                "name": r.name,
                "paper_row": r.paper_row,
                "reads_text": r.reads_text,
                "deviation": r.deviation,
            }
            for r in all_recipes()
        ]
        emit(
            {"recipes": found},
            json,
            lambda: table(
                f"recipes (*: {LEAK_FREE})",
                ["name", "paper's row", "text", "deviation"],
                [
                    (
                        r["name"],
                        r["paper_row"] or "—",
                        "✓" if r["reads_text"] else "",
                        str(r["deviation"]).replace(LEAK_FREE, "*"),
                    )
                    for r in found
                ],
            ),
        )
        return
    rows = [
        {"option": path.rsplit(".", 1)[-1], "path": path, "value": value, "help": f.description}
        for path, f, value in fields(recipe(name).config)
    ]
    emit(
        {"recipe": name, "fields": rows},
        json,
        lambda: table(
            f"settings of {name}",
            ["option", "value", "meaning"],
            [
                ("--" + str(r["option"]).replace("_", "-"), r["value"], r["help"] or "")
                for r in rows
            ],
        ),
    )
