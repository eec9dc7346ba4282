"""The paper's own numbers, to be shown beside ours. Its data is not ours."""

from __future__ import annotations

from typing import NamedTuple


class Published(NamedTuple):
    """A number with its standard error, as printed."""

    value: float
    error: float | None = None


TABLE2_METRICS = ("goodreads rmse", "eedi accuracy", "eedi auroc", "eedi aupr")
_TABLE2 = """
DMF                 .921 .001  .738 .002  .653 .003  .828 .002
PVAE                .894 .001  .746 .001  .682 .000  .834 .000
GC-MC               .916 .002  .735 .001  .672 .002  .819 .001
GCN                 .893 .001  .746 .002  .680 .001  .830 .001
GraphSAGE           .898 .003  .742 .003  .665 .002  .838 .003
GRAPE               .894 .001  .746 .001  .672 .001  .824 .001
GAT                 .893 .002  .745 .000  .684 .001  .832 .001
GIN-ε               .892 .000  .747 .001  .689 .002  .838 .001
JK-LSTM             .895 .000  .746 .001  .685 .002  .840 .002
GCN with WordNodes  .886 .002  .751 .002  .710 .002  .839 .003
GCN Init: BoW       .891 .001  .748 .001  .710 .001  .836 .000
GCN Init: NeuralBoW .886 .001  .751 .000  .706 .001  .848 .001
GCN Init: BERT CLS  .889 .001  .748 .001  .706 .001  .841 .001
GCN Init: BERT Avg. .887 .001  .750 .001  .708 .001  .848 .001
GCN Init: SBERT     .890 .000  .752 .002  .708 .002  .848 .001
GAT Init: NeuralBoW .888 .001  .747 .001  .707 .002  .841 .001
GAT Init: BERT Avg. .887 .001  .749 .001  .709 .001  .844 .002
GAT Init: SBERT     .884 .000  .752 .001  .710 .001  .849 .001
GRAPE Init: NeuralBoW .890 .001 .748 .001 .704 .001 .842 .001
GRAPE Init: BERT Avg. .889 .001 .749 .000 .704 .001 .838 .001
GRAPE Init: SBERT   .892 .001  .750 .002  .711 .002  .846 .003
GIN Init: NeuralBoW .890 .001  .748 .002  .710 .001  .843 .002
GIN Init: BERT Avg. .888 .001  .752 .001  .711 .001  .836 .002
GIN Init: SBERT     .885 .000  .752 .001  .711 .000  .845 .001
JK Init: NeuralBoW  .889 .001  .747 .002  .709 .001  .842 .000
JK Init: BERT Avg.  .889 .001  .749 .002  .708 .001  .838 .001
JK Init: SBERT      .886 .000  .751 .001  .710 .001  .839 .002
CoRGi: Concat       .873 .000  .761 .001  .720 .001  .891 .000
CoRGi: Dot-product  .872 .000  .760 .001  .721 .001  .888 .001
"""


def _read(line: str) -> tuple[str, dict[str, Published]]:
    words = line.split()
    numbers = [float(word) for word in words[-8:]]
    found = [Published(*pair) for pair in zip(numbers[::2], numbers[1::2], strict=True)]
    return " ".join(words[:-8]), dict(zip(TABLE2_METRICS, found, strict=True))


TABLE2 = dict(_read(line) for line in _TABLE2.strip().splitlines())
TABLE1_COLUMNS = (
    "users",
    "items",
    "edges",
    "edges per user",
    "edges per item",
    "vocabulary",
    "words per item",
    "density",
    "labels",
)
TABLE1: dict[str, tuple[float, ...]] = {
    "Synthetic": (1000, 1000, 100_000, 100, 100, 5, 2.50, 0.100, 2),
    "Eedi": (35_073, 22_931, 991_740, 28, 43, 21_072, 20.02, 0.001, 2),
    "Goodreads": (2243, 2452, 114_839, 51, 47, 35_111, 132.32, 0.021, 5),
}

# by row and group of users; the 'all' of Goodreads disagrees with Table 2's
TABLE3: dict[str, dict[str, dict[str, Published]]] = {
    "GCN": {
        "goodreads rmse": {
            "all": Published(0.792, 0.007),
            "D>10": Published(0.796, 0.008),
            "D<=10": Published(0.752, 0.03),
        },
        "eedi accuracy": {
            "all": Published(0.746, 0.002),
            "D>10": Published(0.751, 0.002),
            "D<=10": Published(0.720, 0.008),
        },
    },
    "GCN Init: SBERT": {
        "goodreads rmse": {
            "all": Published(0.786, 0.006),
            "D>10": Published(0.789, 0.007),
            "D<=10": Published(0.728, 0.03),
        },
        "eedi accuracy": {
            "all": Published(0.753, 0.003),
            "D>10": Published(0.757, 0.002),
            "D<=10": Published(0.727, 0.008),
        },
    },
    "CoRGi: Dot-product": {
        "goodreads rmse": {
            "all": Published(0.781, 0.006),
            "D>10": Published(0.786, 0.007),
            "D<=10": Published(0.685, 0.03),
        },
        "eedi accuracy": {
            "all": Published(0.758, 0.002),
            "D>10": Published(0.760, 0.003),
            "D<=10": Published(0.750, 0.010),
        },
    },
}

# (row, column) → win rate at each held-out rate, on Eedi
TABLE4: dict[tuple[str, str], dict[float, float]] = {
    ("GCN Init: SBERT", "GRAPE"): {0.5: 0.514, 0.99: 0.610},
    ("CoRGi: Dot-product", "GRAPE"): {0.5: 0.532, 0.99: 0.837},
    ("CoRGi: Dot-product", "GCN Init: SBERT"): {0.5: 0.526, 0.99: 0.695},
}

# on Goodreads
CACHING: dict[str, dict[str, float]] = {
    "with caching": {"rmse": 0.879, "seconds": 10.41},
    "without caching": {"rmse": 0.879, "seconds": 41.86},
}

# by recipe: the appendix's tables, by metric as in Table 2
VARIANTS: dict[str, dict[str, Published]] = {
    "corgi-co-concatenate": {
        "goodreads rmse": Published(0.886, 0.000),
        "eedi accuracy": Published(0.752, 0.001),
    },
    "corgi-dp-concatenate": {
        "goodreads rmse": Published(0.884, 0.001),
        "eedi accuracy": Published(0.752, 0.001),
    },
    "corgi-co-one-way": {
        "goodreads rmse": Published(0.879, 0.000),
        "eedi accuracy": Published(0.756, 0.002),
        "eedi auroc": Published(0.715, 0.002),
        "eedi aupr": Published(0.874, 0.002),
    },
    "corgi-dp-one-way": {
        "goodreads rmse": Published(0.879, 0.001),
        "eedi accuracy": Published(0.757, 0.001),
        "eedi auroc": Published(0.717, 0.001),
        "eedi aupr": Published(0.874, 0.002),
    },
    # both ways, from the appendix; Table 2 has the same means with smaller errors
    "corgi-co": {
        "goodreads rmse": Published(0.873, 0.001),
        "eedi accuracy": Published(0.761, 0.001),
        "eedi auroc": Published(0.720, 0.002),
        "eedi aupr": Published(0.891, 0.001),
    },
    "corgi-dp": {
        "goodreads rmse": Published(0.872, 0.001),
        "eedi accuracy": Published(0.760, 0.002),
        "eedi auroc": Published(0.721, 0.002),
        "eedi aupr": Published(0.888, 0.001),
    },
}
# the combination table's additions are of the one-way form
ADDED: dict[str, dict[str, Published]] = {
    "corgi-co-one-way": {
        "goodreads rmse": Published(0.879, 0.000),
        "eedi accuracy": Published(0.756, 0.001),
    },
    "corgi-dp-one-way": {
        "goodreads rmse": Published(0.879, 0.000),
        "eedi accuracy": Published(0.757, 0.001),
    },
}
DATASETS = {"rating": "goodreads", "binary": "eedi"}  # the paper's data of each task


def stand_in_note(kind: str) -> str:
    """Whose numbers the paper's columns hold."""
    name = DATASETS[kind].capitalize()
    return f"The paper's numbers are of its own {name} data, which this is not."
