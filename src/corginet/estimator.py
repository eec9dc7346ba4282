"""Estimator: fit, predict, evaluate, save and load, in one object."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
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
from corginet.data.readers import Source, name_of, read_table
from corginet.data.splits import PARTS, TEST, TRAIN, VALIDATION, Split, make_split
from corginet.data.vocabulary import as_text
from corginet.errors import UserError
from corginet.models.ensemble import Ensemble
from corginet.models.values import to_values
from corginet.nn.content import Content
from corginet.nn.readout import Pairs
from corginet.recipes import RunConfig, recipe
from corginet.run import Saved, complete_or_absent, part_counts, read_run, write_run
from corginet.runtime import versions
from corginet.text.encoders import Encoder
from corginet.text.stems import Stems
from corginet.text.store import ContentStore, Progress, cache_folder
from corginet.training.closed_form import ClosedForm, fit_at_once
from corginet.training.metrics import by_degree, by_quadrant, metrics
from corginet.training.trainer import Fitted, Trainer, TrainingData, predict_raw
from corginet.training.trainer import Progress as TrainingProgress
from corginet.world import extend_world, graph_of, no_content, predict_hiding_own

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
        self.store = self._encoded(self.texts, store)
        content = self._content(self.texts)
        torch.manual_seed(seed)
        self.model = self._build(content)
        data = self._training_data(content)
        self.fitted = self._fit(data, checkpoint)
        self.report = self._score(content)
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
        raw = predict_raw(self.model, data.graph, data.validation, data.content)
        self.model.calibrate(data, raw)
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

    def _encoded(self, texts: Sequence[str], store: ContentStore | None) -> ContentStore | None:
        """The texts in a store: the given one, or the cache that all fits share."""
        model = self.config.model
        if not model.reads_words and not model.summaries:
            return None
        if store is None:
            encoder = self.config.encoder.build()
            precision = self.config.encoder.precision
            folder = cache_folder(encoder, precision)
            store = ContentStore.create(folder, encoder.dim, precision, encoder.fingerprint())
        self.store = store
        if store.missing(texts):
            store.add(texts, self._encoder(), self.on_encode)
        return store

    def content(self) -> Content:
        """The items' frozen text, as the model reads it."""
        return self._content(self.texts)

    def _content(self, texts: Sequence[str]) -> Content:
        found = self._stored_content(texts)
        if not self.config.model.reads_stems:
            return found
        # the vocabulary is that of the fitted texts: new ones bring no new stems
        return dataclasses.replace(found, bag=Stems(self.texts).bag(texts))

    def _stored_content(self, texts: Sequence[str]) -> Content:
        if self.store is None:
            return no_content(len(texts))
        new = self.store.missing(texts)  # texts that came with a question: kept in memory only
        extra = dict(zip(new, self._encoder().encode(new), strict=True)) if new else {}
        return self.store.content(texts, self.config.model.summaries, extra)

    def _encoder(self) -> Encoder:
        """The recipe's encoder, which must be the one that the store was made by."""
        encoder = self.config.encoder.build()
        if self.store is not None and encoder.fingerprint() != self.store.encoder:
            raise UserError(
                f"{self.store.folder} was made by another encoder ({self.store.encoder}) and "
                "lacks some of the texts; make it again with corginet encode"
            )
        return encoder

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

    # --- scoring

    def _score(self, content: Content) -> dict[str, Any]:
        """Validation and test metrics; this is the only look at the test part."""
        graph, out = self.training_graph(), {}
        for part in (VALIDATION, TEST):
            pairs, targets = self._part(part)
            if len(targets):
                predicted = self._values(graph, pairs, content)
                out[PARTS[part]] = self._grouped(predicted, targets.numpy(), pairs, graph)
        scored = out.get("test", out["validation"])
        return {
            **scored,
            "validation": out["validation"]["metrics"],
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
        task, degrees = self.ratings.task, graph.degrees.numpy()
        of_users = degrees[pairs.users.numpy()]
        of_items = degrees[pairs.items.numpy() + graph.n_users]
        actual = actual.astype(np.float64)
        return {
            "metrics": metrics(predicted, actual, task),
            "by_degree": by_degree(predicted, actual, of_users, task),
            "by_quadrant": by_quadrant(predicted, actual, of_users > 0, of_items > 0, task),
        }

    def evaluate(self, ratings: Source | None = None, **reading: Any) -> dict[str, Any]:
        """Metrics on the test part, or on other ratings of known or new users and items."""
        if ratings is None:
            part = TEST if len(self.split.rows(TEST)) else VALIDATION
            pairs, targets = self._part(part)
            graph, content = self.training_graph(), self._content(self.texts)
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

        `history` gives values of new (or known) users, `items` texts of new items. A pair whose
        own value is among the observed ones is predicted with that value hidden.
        """
        import polars as pl

        frame = read_table(pairs, ["user", "item"], columns)
        users, items_asked = as_text(frame["user"]), as_text(frame["item"])
        for name, column in (("user", users), ("item", items_asked)):
            if column.null_count():
                row = int(column.is_null().arg_max() or 0) + 1
                raise UserError(
                    f"{name_of(pairs)}: column '{name}' has {column.null_count()} empty cells "
                    f"(first in row {row}); fill them"
                )
        known = None if history is None else self._read_history(history, columns)
        texts = None if items is None else read_texts(items, columns, "allow")
        values, _, _ = self._predict_ids(users, items_asked, known, texts)
        return pl.DataFrame({"user": users, "item": items_asked, "prediction": values})

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
        values = self._values(self.training_graph(), pairs, self.content())
        best = np.argsort(-values, kind="stable")[:top]
        ids = self.ratings.item_ids.ids.gather(unseen[best])
        return pl.DataFrame({"item": ids, "prediction": values[best]})

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
        train = self.split.rows(TRAIN)
        r = self.ratings
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
        content = self._content(world.texts)
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
            if self.store is not None:
                self.store.copy_of(self.texts, building / "content")

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
        self.fitted = Fitted(
            saved.metrics["best_epoch"], saved.metrics["epochs"], float("nan"), saved.history
        )
        content_folder = folder / "content"
        self.store = ContentStore.open(content_folder) if content_folder.is_dir() else None
        self.model = self._build(self._content(self.texts))
        try:
            self.model.load_state_dict(load_file(folder / "weights.safetensors"))
        except Exception as error:
            first = str(error).strip().splitlines()[0]
            raise UserError(f"{folder}: damaged weights ({first}); fit it again") from None
        self.model.eval()
        return self
