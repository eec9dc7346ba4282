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
