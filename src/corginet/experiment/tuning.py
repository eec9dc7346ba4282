"""Search a recipe's settings with Optuna: pruned, resumable, in several processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from corginet.config import fields
from corginet.data.dataset import Dataset
from corginet.errors import UserError
from corginet.estimator import Estimator
from corginet.experiment.contenders import Cell, Contender, data_digest
from corginet.experiment.controls import text_for
from corginet.experiment.division import divide
from corginet.experiment.workers import run_each
from corginet.recipes import recipe
from corginet.training.trainer import Progress

FIRST_TRIALS = 5  # run in full before any is pruned


@dataclass(frozen=True, eq=False)
class Search:
    """A study: one recipe on one dataset and seed, kept in a SQLite file in a folder."""

    dataset: Dataset
    contender: Contender
    seed: int
    folder: Path

    @cached_property
    def space(self) -> dict[str, dict[str, Any]]:
        """Settings to search, as declared beside the config fields: option → its space."""
        found = {}
        for path, info, value in fields(recipe(self.contender.recipe).config):
            extra = info.json_schema_extra
            name = path.rsplit(".", 1)[-1]
            fixed = name in self.contender.settings or value is None
            if isinstance(extra, dict) and "search" in extra and not fixed:
                space = extra["search"]
                assert isinstance(space, dict)
                found[name] = {**space, "default": value}
        if not found:
            raise UserError(
                f"recipe '{self.contender.recipe}' has no setting to search; it chooses its own"
            )
        return found

    @property
    def name(self) -> str:
        return f"{self.contender.recipe}-{data_digest(self.dataset)}-seed{self.seed}"

    def study(self, turn: int = 0) -> Any:
        """The study, made or found; each turn of asking it draws differently."""
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.folder.mkdir(parents=True, exist_ok=True)
        sampler = optuna.samplers.TPESampler(
            seed=hash((self.seed, turn)) % 2**32, n_startup_trials=FIRST_TRIALS, constant_liar=True
        )
        pruner = optuna.pruners.MedianPruner(n_startup_trials=FIRST_TRIALS, n_warmup_steps=20)
        study = optuna.create_study(
            storage=f"sqlite:///{self.folder / 'study.db'}",
            study_name=self.name,
            sampler=sampler,
            pruner=pruner,
            load_if_exists=True,
        )
        if not study.trials:  # the recipe's own settings are the first to beat
            study.enqueue_trial({name: space["default"] for name, space in self.space.items()})
        return study


@dataclass(frozen=True, eq=False)
class _Trial:
    """One trial of a search, the turn-th."""

    search: Search
    turn: int


def run_search(search: Search, n_trials: int, n_jobs: int, told: Callable[[str], None]) -> Any:
    """Run what is missing of the trials, each in a process of its own; answers the study."""
    done = finished(search.study())

    def note(_: _Trial, outcome: dict[str, Any]) -> None:
        if "error" in outcome:
            told(f"a trial failed: {outcome['error']}")

    trials = [_Trial(search, turn) for turn in range(done, n_trials)]
    run_each(_run_trial, trials, n_jobs, note)
    study = search.study()
    if not any(trial.state.name == "COMPLETE" for trial in study.trials):
        raise UserError("no trial was finished; see the messages above")
    return study


def finished(study: Any) -> int:
    """Trials that were run to their end, or stopped as hopeless."""
    return sum(trial.state.name in ("COMPLETE", "PRUNED") for trial in study.trials)


def _run_trial(order: _Trial) -> dict[str, Any]:
    """In a process of its own: settings that this data cannot bear are a failed trial."""
    search = order.search
    search.study(order.turn).optimize(lambda trial: validation_loss(search, trial), n_trials=1)
    return {"done": True}


def validation_loss(search: Search, trial: Any) -> float:
    """One trial: fit with the suggested settings; the test part takes no part in it."""
    import optuna

    settings = {name: _suggest(trial, name, space) for name, space in search.space.items()}
    cell = Cell(search.contender, search.seed, settings)
    division = divide(search.dataset, cell)
    text = text_for(cell, search.dataset, search.folder)
    estimator = Estimator(search.contender.recipe, **{**cell.settings, "seed": search.seed})

    def watch(progress: Progress) -> None:
        if progress.validation_loss is None:
            return
        trial.report(progress.validation_loss, progress.epoch)
        if trial.should_prune():
            raise optuna.TrialPruned

    estimator.on_epoch = watch
    estimator.fit(replace(text.dataset), split=division.split, store=text.store)
    return estimator.fitted.best_loss


def _suggest(trial: Any, name: str, space: dict[str, Any]) -> Any:
    if "choices" in space:
        return trial.suggest_categorical(name, space["choices"])
    return trial.suggest_float(name, space["low"], space["high"], log=space.get("log", False))
