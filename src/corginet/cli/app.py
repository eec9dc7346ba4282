"""The command line: parse, run, and turn errors into one sentence and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cyclopts import App
from cyclopts.exceptions import CycloptsError

from corginet import __version__
from corginet.errors import UserError

app = App(
    name="corginet",
    help="Predict what a user would give an item, when items carry text.",
    version=__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,  # an interruption exits with 1, like other failures
)
COMMANDS = {
    "demo": ("corginet.cli.demo:demo", "The paper's synthetic experiment, whole, with a report."),
    "fit": ("corginet.cli.fit:fit", "Train a model on ratings and item texts."),
    "evaluate": ("corginet.cli.evaluate:evaluate", "Metrics of a run, on its test part or others."),
    "predict": ("corginet.cli.predict:predict", "Predict pairs, of new users and items too."),
    "recommend": ("corginet.cli.predict:recommend", "The best unseen items of a user."),
    "explain": (
        "corginet.cli.explain:explain",
        "Why a prediction is what it is: words, neighbours.",
    ),
    "compare": (
        "corginet.cli.compare:compare",
        "Recipes on the same splits, with errors and tests.",
    ),
    "paper": ("corginet.cli.paper:paper", "A table or figure of the paper, on your data."),
    "encode": ("corginet.cli.encode:encode", "Turn item texts into a content store."),
    "tune": ("corginet.cli.tune:tune", "Search a recipe's settings by validation."),
    "recipes": ("corginet.cli.recipes:recipes", "All models, or the settings of one."),
}
for _name, (_target, _help) in COMMANDS.items():
    app.command(_target, name=_name, help=_help)
_bench = App(name="bench", help="Measure this machine and this code, in ratios.")
_bench.command("corginet.cli.bench:attention", name="attention", help="Exactness and speed.")
_bench.command("corginet.cli.bench:epoch", name="epoch", help="One epoch at the paper's size.")
app.command(_bench)
_data = App(name="data", help="Raw downloads of the paper's datasets into ratings and items.")
_data.command("corginet.cli.data:goodreads", name="goodreads", help="Books, rated 1 to 5.")
_data.command("corginet.cli.data:eedi", name="eedi", help="Questions, answered right or wrong.")
app.command(_data)


def run(arguments: Sequence[str]) -> int:
    """Run one command; answers the exit code."""
    try:
        app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except UserError as error:
        print(f"corginet: {error}", file=sys.stderr)
        return 2
    except CycloptsError as error:
        sentence = " ".join(str(error).split())
        print(f"corginet: {sentence} See: corginet {_command(arguments)}--help", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("corginet: stopped", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def _command(arguments: Sequence[str]) -> str:
    return f"{arguments[0]} " if arguments and arguments[0] in COMMANDS else ""


def main() -> None:
    sys.exit(run(sys.argv[1:]))
