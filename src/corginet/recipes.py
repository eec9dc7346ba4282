"""All recipes: a name, the paper's row, and a config. A variant is a row here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from corginet.config import Config, validate
from corginet.data.splits import SplitConfig
from corginet.errors import UserError, did_you_mean
from corginet.models.dmf import DmfConfig
from corginet.models.ensemble import EnsembleConfig
from corginet.models.factors import FactorConfig
from corginet.models.graph_model import GraphModelConfig
from corginet.models.plain import BiasConfig, MeanConfig, NeighbourConfig
from corginet.models.pvae import PvaeConfig
from corginet.models.regression import RegressionConfig
from corginet.text.encoders import EncoderConfig
from corginet.training.intervals import IntervalConfig
from corginet.training.observation import BatchConfig, ObservationConfig
from corginet.training.trainer import TrainingConfig

ModelConfig = Annotated[
    GraphModelConfig
    | EnsembleConfig
    | DmfConfig
    | PvaeConfig
    | FactorConfig
    | MeanConfig
    | BiasConfig
    | NeighbourConfig
    | RegressionConfig,
    Field(discriminator="kind"),
]


class RunConfig(Config):
    """Everything that decides a run, beside the data."""

    recipe: str = Field(description="name of the recipe")
    seed: int = Field(0, ge=0, lt=2**31, description="seed of split, weights and training")
    model: ModelConfig = GraphModelConfig()
    encoder: EncoderConfig = EncoderConfig()
    split: SplitConfig = SplitConfig()
    observation: ObservationConfig = ObservationConfig()
    batches: BatchConfig = BatchConfig()
    training: TrainingConfig = TrainingConfig()
    interval: IntervalConfig = IntervalConfig()


@dataclass(frozen=True)
class Recipe:
    """A named config, the paper's row it stands for, and how it departs from it."""

    name: str
    paper_row: str
    config: RunConfig
    deviation: str = ""

    @property
    def reads_text(self) -> bool:
        return self.config.model.reads_text


NO_FILE = "minilm's input vectors unless --encoder static:FILE names word vectors"
LEAK_FREE = "trained on hidden edges, full batch, at a higher rate for fewer steps"


_RECIPES: list[tuple[str, str, dict[str, Any], str]] = []


def _row(name: str, paper_row: str, deviation: str = LEAK_FREE, **parts: Any) -> None:
    _RECIPES.append((name, paper_row, parts, deviation))


def _corgi(score: str, combine: str = "add", **along: Any) -> dict[str, Any]:
    return {
        "model": {
            "conv": {"kind": "edge_states", "combine": combine},
            "along_edges": {"score": score, **along},
        }
    }


# the networks without content, each also with initial states from text
_NETWORKS: dict[str, tuple[str, dict[str, Any], str]] = {
    "gcmc": (
        "GC-MC",
        {"conv": {"kind": "gcmc"}, "n_layers": 1},
        f"{LEAK_FREE}; the common readout",
    ),
    "gcn": ("GCN", {"conv": {"kind": "gcn"}}, LEAK_FREE),
    "sage": ("GraphSAGE", {"conv": {"kind": "sage"}}, LEAK_FREE),
    "grape": ("GRAPE", {"conv": {"kind": "edge_states"}, "edge_dropout": 0.3}, LEAK_FREE),
    "gat": ("GAT", {"conv": {"kind": "gat"}}, LEAK_FREE),
    "gin": ("GIN-ε", {"conv": {"kind": "gin"}}, f"{LEAK_FREE}; layer normalisation"),
    "jk": ("JK-LSTM", {"conv": {"kind": "gcn"}, "layers": {"final": "lstm"}}, LEAK_FREE),
}
# sums over many neighbours want smaller steps: at the usual rate one seed in four stood still
_STEPS: dict[str, dict[str, Any]] = {"gin": {"training": {"learning_rate": 3e-3}}}
# initial states: the paper's name, the summary, the encoder where the recipe needs a special one
_INITIAL: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bow": ("BoW", "bow", {}),
    "neuralbow": ("NeuralBoW", "average", {"encoder": {"encoder": "static"}}),
    "cls": ("BERT CLS", "cls", {}),
    "average": ("BERT Avg.", "average", {}),
    "sentence": ("SBERT", "sentence", {}),
}


_row(
    "corgi-plus",
    "",
    "beyond the paper: kin, biases that read, liked neighbours, text components, an ensemble",
    model={
        "kind": "ensemble",
        "member": {
            "channels": 32,
            "n_layers": 2,
            "values": "reading_residuals",
            "kindred": True,
            "states": {"states": "statistics", "summary": "components", "summary_dropout": 0.3},
            "conv": {"kind": "taste", "state_dropout": 0.1},
            "readout": {"hidden": 64, "product": True, "start": "zero"},
        },
    },
    observation={"hidden_share": 0.3, "hidden_users": 0.1, "hidden_items": 0.2},
    training={
        "optimizer": "adamw",
        "weight_decay": 0.01,
        "averaging": 0.9,
        "epochs": 200,
        "patience": 80,
        "validate_every": 5,
    },
)
_row("corgi-co", "CoRGi: Concat", **_corgi("additive"))
_row("corgi-dp", "CoRGi: Dot-product", **_corgi("dot_product"))
for _short, _score in (("co", "additive"), ("dp", "dot_product")):
    _row(f"corgi-{_short}-one-way", "CoRGi, user-only", **_corgi(_score, both_ways=False))
    _row(f"corgi-{_short}-concatenate", "CoRGi, combination", **_corgi(_score, "concatenate"))
    _row(
        f"corgi-{_short}-cached",
        "CoRGi, with caching",
        **_corgi(_score, cached=True),
        observation={"policy": "folds"},
    )
_row("corgi-dynamic", "", "dynamic attention, beyond the paper", **_corgi("dynamic"))
_row(
    "corgi-gat",
    "",
    "the paper's outlook: its attention inside GAT",
    model={"conv": {"kind": "gat"}, "along_edges": {"score": "dot_product"}},
)
_row(
    "corgi-read",
    "",
    "the asked pair's own attention at the readout, beyond the paper",
    model={
        "conv": {"kind": "edge_states"},
        "along_edges": {"score": "dot_product"},
        "readout": {"pair_score": "dot_product"},
    },
)
_row(
    "dmf",
    "DMF",
    f"{LEAK_FREE}; squared error or cross entropy",
    model={"kind": "dmf"},
    training={"weight_decay": 1e-4},
)
_row(
    "pvae",
    "PVAE",
    f"{LEAK_FREE}; sums scaled by the set's size",
    model={"kind": "pvae"},
    training={"weight_decay": 1e-4},
)
for _name, (_paper, _model, _deviation) in _NETWORKS.items():
    _row(_name, _paper, _deviation, model=_model, **_STEPS.get(_name, {}))
for _name, _kinds in (
    ("gcn", ("bow", "neuralbow", "cls", "average", "sentence")),
    ("gat", ("neuralbow", "average", "sentence")),
    ("grape", ("neuralbow", "average", "sentence")),
    ("gin", ("neuralbow", "average", "sentence")),
    ("jk", ("neuralbow", "average", "sentence")),
):
    _short, _model, _deviation = _NETWORKS[_name]
    for _kind in _kinds:
        _words, _summary, _more = _INITIAL[_kind]
        _row(
            f"{_name}+{_kind}",
            f"{_short.split('-')[0]} Init: {_words}",
            f"{_deviation}; {NO_FILE}" if _kind == "neuralbow" else _deviation,
            model={**_model, "states": {"summary": _summary}},
            **_more,
            **_STEPS.get(_name, {}),
        )
_row(
    "gcn+words",
    "GCN with WordNodes",
    model={**_NETWORKS["gcn"][1], "nodes": {"word_nodes": True}},
)
_row(
    "lightgcn",
    "",
    "discussed in the paper, no row of it; the common readout",
    model={
        "conv": {"kind": "lightgcn"},
        "states": {"states": "trainable"},
        "layers": {"final": "mean"},
    },
)

_row("mean", "", "the average of the observed values", model={"kind": "mean"})
_row("bias", "", "damped biases of users and items", model={"kind": "bias"})
_row("knn", "", "what users gave to similar items", model={"kind": "neighbours"})
for _name, _implicit, _words in (
    ("mf", False, "matrix factorisation with biases"),
    ("svdpp", True, "SVD++: which items a user met, too"),
):
    _row(
        _name,
        "",
        _words,
        model={"kind": "factors", "implicit": _implicit},
        training={"learning_rate": 0.05},
        observation={"policy": "shared"},
    )
for _name, _method, _words in (
    ("ridge", "ridge", "linear regression on statistics and text vectors"),
    ("boosting", "boosting", "gradient boosting on statistics and text vectors"),
):
    _row(_name, "", _words, model={"kind": "regression", "method": _method})


def recipe_names() -> list[str]:
    return [row[0] for row in _RECIPES]


def recipe(name: str) -> Recipe:
    """Look a recipe up by name."""
    for row_name, paper_row, parts, deviation in _RECIPES:
        if row_name == name:
            model = {"kind": "graph", **parts.get("model", {})}
            tree = {"recipe": name, **parts, "model": model}
            config = validate(RunConfig, tree, f"recipe {name}")
            return Recipe(name, paper_row, config, deviation)
    raise UserError(
        f"unknown recipe '{name}'{did_you_mean(name, recipe_names()) or ';'} "
        "All names: corginet recipes."
    )


def all_recipes() -> list[Recipe]:
    return [recipe(name) for name in recipe_names()]
