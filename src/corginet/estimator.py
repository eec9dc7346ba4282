"""Estimator: fit, predict, evaluate, save and load, in one object."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from corginet.config import DEFAULT_RECIPE, merge, override, validate
from corginet.data.dataset import Dataset, read_texts
from corginet.data.graph import InteractionGraph
from corginet.data.ratings import Ratings
from corginet.data.readers import Source, read_pairs
from corginet.data.splits import TEST, TRAIN, VALIDATION, Split, make_split
from corginet.errors import UserError
from corginet.models.ensemble import Ensemble
from corginet.models.values import to_values
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.reading import TextReader
from corginet.recipes import RunConfig, recipe
from corginet.run import Saved, complete_or_absent, part_counts, read_run, write_run
from corginet.runtime import versions
from corginet.scoring import ends, grouped, learn_interval, plain_alternative
from corginet.text.store import ContentStore, Progress
from corginet.training.closed_form import ClosedForm, fit_at_once
from corginet.training.trainer import Fitted, Trainer, TrainingData, predict_raw
from corginet.training.trainer import Progress as TrainingProgress
from corginet.world import extend_world, graph_of, predict_hiding_own

if TYPE_CHECKING:
    import polars as pl


class Estimator:
    """A recipe with its settings, and after `fit` a model that predicts.

        Estimator("corgi-dp", epochs=50).fit("ratings.csv", "items.csv").predict(pairs)

    New users (through their few values) and new items (through their texts) are predicted
    without retraining.
    """

    def __init__(
        self,
        recipe_name: str = DEFAULT_RECIPE,
        config: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        base = recipe(recipe_name).config
        if config:
            base = validate(RunConfig, merge(base.model_dump(), config), "the config")
        self.config = override(base, fields, f"recipe '{recipe_name}'")
        self.on_encode: Progress | None = None
        self.on_epoch: Callable[[TrainingProgress], None] = lambda _: None

    # --- fitting

    def fit(
        self,
        ratings: Source | Dataset,
        items: Source | None = None,
        *,
        split: Split | None = None,
        store: ContentStore | None = None,
        checkpoint: Path | None = None,
        **reading: Any,
    ) -> Estimator:
        """Train on the training part, stop early on the validation part, score the test part."""
        started = time.perf_counter()
        read = isinstance(ratings, Dataset)
        self.dataset = ratings if read else Dataset.read(ratings, items, **reading)
        self.ratings, self.texts = self.dataset.ratings, self.dataset.texts
        seed = self.config.seed
        self.split = split or make_split(self.ratings, self.config.split, seed)
        self.reader = TextReader(self.config.model, self.config.encoder, self.texts)
        self.reader.encode(self.texts, store, self.on_encode)
        content = self.content()
        torch.manual_seed(seed)
        self.model = self._build(content)
        data = self._training_data(content)
        self.fitted = self._fit(data, checkpoint)
        self.report = self._score(data)
        self.report["seconds"] = time.perf_counter() - started
        return self

    def _fit(self, data: TrainingData, checkpoint: Path | None) -> Fitted:
        if isinstance(self.model, ClosedForm):
            return fit_at_once(self.model, data)
        c = self.config
        trainer = Trainer(c.training, c.observation, c.batches, c.seed, self.on_epoch)
        if not isinstance(self.model, Ensemble):
            return trainer.fit(self.model, data, checkpoint)
        self.model.prepare(data.content)
        found = trainer.fit(self.model, data, checkpoint)
        self.model.calibrate(data)
        return found

    def _build(self, content: Content) -> torch.nn.Module:
        dims = {kind: table.shape[1] for kind, table in content.summaries.items()}
        if content.bag is not None:
            dims["bow"] = content.bag.n_words
        n_users, n_items = self.ratings.n_users, self.ratings.n_items
        return self.config.model.build(
            self.ratings.task,
            n_users,
            n_items,
            {**dims, "words": content.words.dim},
            self.config.seed,
        )

    def _training_data(self, content: Content) -> TrainingData:
        pairs, targets = self._part(VALIDATION)
        return TrainingData(self.training_graph(), pairs, targets, content, self.ratings.task)

    def content(self) -> Content:
        """The items' frozen text, as the model reads it."""
        return self.reader.content(self.texts)

    # --- observed graphs and parts

    def training_graph(self) -> InteractionGraph:
        """The training ratings as observed edges."""
        rows = self.split.rows(TRAIN)
        r = self.ratings
        return graph_of(r.users[rows], r.items[rows], r.values[rows], r.n_users, r.n_items)

    def _part(self, part: int) -> tuple[Pairs, Tensor]:
        rows = self.split.rows(part)
        r = self.ratings
        pairs = Pairs(torch.from_numpy(r.users[rows]), torch.from_numpy(r.items[rows]))
        return pairs, torch.from_numpy(r.values[rows]).to(torch.get_default_dtype())

    def scored_pairs(self) -> tuple[Pairs, Tensor]:
        """The test part, or the validation part where there is none."""
        return self._part(TEST if len(self.split.rows(TEST)) else VALIDATION)

    # --- scoring

    def _score(self, data: TrainingData) -> dict[str, Any]:
        """Validation and test metrics; this is the only look at the test part."""
        graph, task, out = data.graph, self.ratings.task, {}
        predicted = self._values(graph, data.validation, data.content)
        actual = data.validation_targets.double().numpy()
        level = self.config.interval.level
        self.interval = learn_interval(predicted, actual, data.validation, graph, task, level)
        # a radius that was set on these very pairs says nothing about them
        out["validation"] = grouped(predicted, actual, data.validation, graph, task, None)
        pairs, targets = self._part(TEST)
        if len(targets):
            predicted = self._values(graph, pairs, data.content)
            out["test"] = self._grouped(predicted, targets.numpy(), pairs, graph)
        scored = out.get("test", out["validation"])
        return {
            **scored,
            "validation": out["validation"]["metrics"],
            "plain": plain_alternative(data, out["validation"]["metrics"]),
            "intervals": self.interval,
            "epochs": self.fitted.epochs,
            "best_epoch": self.fitted.best_epoch,
            "recipe": self.config.recipe,
            "seed": self.config.seed,
            "data_hash": self.ratings.fingerprint(),
            "parts": part_counts(self.split),
            "scored_part": "test" if "test" in out else "validation",
        }

    def _grouped(
        self, predicted: np.ndarray, actual: np.ndarray, pairs: Pairs, graph: InteractionGraph
    ) -> dict[str, Any]:
        return grouped(predicted, actual, pairs, graph, self.ratings.task, self.interval)

    def evaluate(self, ratings: Source | None = None, **reading: Any) -> dict[str, Any]:
        """Metrics on the test part, or on other ratings of known or new users and items."""
        if ratings is None:
            pairs, targets = self.scored_pairs()
            graph, content = self.training_graph(), self.content()
            predicted = self._values(graph, pairs, content)
            return self._grouped(predicted, targets.numpy(), pairs, graph)
        task = self.ratings.task
        bounds = (task.low, task.high)
        given = Ratings.read(ratings, task=task.kind, bounds=bounds, **reading)
        users = given.user_ids.ids.gather(given.users)
        items = given.item_ids.ids.gather(given.items)
        predicted, graph, pairs = self._predict_ids(users, items, None, None)
        return self._grouped(predicted, given.values, pairs, graph)

    # --- predicting

    def predict(
        self,
        pairs: Source,
        *,
        history: Source | None = None,
        items: Source | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> pl.DataFrame:
        """One row per asked pair, in their order: user, item, prediction.

        A number comes with the ends of its interval (low, high), a probability speaks for itself.
        `history` gives values of new (or known) users, `items` texts of new items. A pair whose
        own value is among the observed ones is predicted with that value hidden.
        """
        import polars as pl

        users, items_asked = read_pairs(pairs, columns)
        known = None if history is None else self._read_history(history, columns)
        texts = None if items is None else read_texts(items, columns, "allow")
        values, graph, rows = self._predict_ids(users, items_asked, known, texts)
        columns_out = {"user": users, "item": items_asked, "prediction": values}
        if self.interval:
            low, high = ends(values, rows, graph, self.ratings.task, self.interval)
            columns_out |= {"low": low, "high": high}
        return pl.DataFrame(columns_out)

    def recommend(self, user: str, top: int = 10) -> pl.DataFrame:
        """The items with the highest predictions among those the user has no rating of."""
        import polars as pl

        if top < 1:
            raise UserError(f"--top got {top}; ask for at least 1 item")
        row = int(self.ratings.user_ids.rows(pl.Series([user]))[0])
        if row < 0:
            raise UserError(f"unknown user '{user}'; corginet predict --history takes new users")
        rated = self.ratings.items[self.ratings.users == row]
        unseen = np.setdiff1d(np.arange(self.ratings.n_items), rated)
        pairs = Pairs(torch.full((len(unseen),), row), torch.from_numpy(unseen))
        raw = predict_raw(self.model, self.training_graph(), pairs, self.content())
        best = torch.argsort(-raw, stable=True)[:top]  # clipped values would be tied at the bound
        values = to_values(raw[best], self.ratings.task).double().numpy()
        ids = self.ratings.item_ids.ids.gather(unseen[best.numpy()])
        return pl.DataFrame({"item": ids, "prediction": values})

    def _read_history(self, history: Source, columns: Mapping[str, str] | None) -> Ratings:
        task = self.ratings.task
        return Ratings.read(
            history, columns, task=task.kind, bounds=(task.low, task.high), duplicates="last"
        )

    def _predict_ids(
        self,
        users: pl.Series,
        items: pl.Series,
        history: Ratings | None,
        new_texts: pl.DataFrame | None,
    ) -> tuple[np.ndarray, InteractionGraph, Pairs]:
        train, r = self.split.rows(TRAIN), self.ratings
        seen = dataclasses.replace(
            r, users=r.users[train], items=r.items[train], values=r.values[train]
        )
        world = extend_world(Dataset(seen, self.texts), users, items, history, new_texts)
        pairs = Pairs(
            torch.from_numpy(world.ratings.user_ids.rows(users)),
            torch.from_numpy(world.ratings.item_ids.rows(items)),
        )
        r = world.ratings
        graph = graph_of(r.users, r.items, r.values, r.n_users, r.n_items)
        content = self.reader.content(world.texts)
        predict = partial(self._values, content=content)
        return predict_hiding_own(predict, graph, pairs), graph, pairs

    def _values(self, graph: InteractionGraph, pairs: Pairs, content: Content) -> np.ndarray:
        raw = predict_raw(self.model, graph, pairs, content)
        values: np.ndarray = to_values(raw, self.ratings.task).double().numpy()
        return values

    # --- saving and loading

    def save(self, folder: Path | str, overwrite: bool = False) -> None:
        """Write a self-contained run folder, whole or not at all."""
        with complete_or_absent(Path(folder), overwrite) as building:
            saved = Saved(
                self.config.model_dump(),
                self.ratings,
                self.texts,
                self.split,
                self.report,
                self.fitted.history,
                {**versions(), "data_hash": self.ratings.fingerprint()},
            )
            write_run(building, saved, self.model.state_dict())
            if self.reader.store is not None:
                self.reader.store.copy_of(self.texts, building / "content")

    @classmethod
    def load(cls, folder: Path | str) -> Estimator:
        """Read a run folder; nothing else is needed."""
        from safetensors.torch import load_file

        folder = Path(folder)
        saved = read_run(folder)
        self = cls.__new__(cls)
        self.config = validate(RunConfig, saved.config, f"{folder.name}/config.toml")
        self.on_encode, self.on_epoch = None, lambda _: None
        self.ratings, self.texts, self.split = saved.ratings, saved.texts, saved.split
        self.dataset = Dataset(saved.ratings, saved.texts, folder.name)
        self.report = saved.metrics
        self.interval = saved.metrics.get("intervals")
        self.fitted = Fitted(
            saved.metrics["best_epoch"], saved.metrics["epochs"], float("nan"), saved.history
        )
        content_folder = folder / "content"
        self.reader = TextReader(self.config.model, self.config.encoder, self.texts)
        if content_folder.is_dir():
            self.reader.store = ContentStore.open(content_folder)
        self.model = self._build(self.content())
        try:
            self.model.load_state_dict(load_file(folder / "weights.safetensors"))
        except Exception as error:
            first = str(error).strip().splitlines()[0]
            raise UserError(f"{folder}: damaged weights ({first}); fit it again") from None
        self.model.eval()
        return self
