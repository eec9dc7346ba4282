"""Encoders and the content store."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from corginet.errors import UserError
from corginet.text.encoders import EncoderConfig, HashedEncoder
from corginet.text.onehot import OneHotEncoder
from corginet.text.store import ContentStore, cache_folder
from corginet.text.transformer import TransformerEncoder

TEXTS = ["the red house", "", "a house, a house", "the red house"]


def tiny_bert(folder: Path) -> Path:
    """A real BERT of 2 layers and 32 channels with its own WordPiece vocabulary."""
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "red", "hou", "##se", "a", ","]
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizerFast(
        vocab={w: i for i, w in enumerate(words)}, do_lower_case=True
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=48,
    )
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def test_hashed_words_are_the_same_everywhere() -> None:
    first, empty, third, again = HashedEncoder(16, 64).encode(TEXTS)
    assert first.vectors.shape == (3, 16) and empty.vectors.shape == (0, 16)
    assert TEXTS[0][slice(*first.spans[1])] == "red"
    assert (first.vectors[2] == third.vectors[1]).all()
    assert np.allclose(first.summaries[0], first.vectors.mean(0))
    assert (empty.summaries == 0).all() and (again.vectors == first.vectors).all()


def test_transformer_words_have_spans_and_summaries(tmp_path: Path) -> None:
    encoder = TransformerEncoder(str(tiny_bert(tmp_path / "bert")), 3, 50)
    first, empty, third, _ = encoder.encode(TEXTS)
    assert [TEXTS[0][a:b] for a, b in first.spans] == ["the", "red", "hou"]
    assert first.vectors.shape == (3, 32) and empty.vectors.shape == (0, 32)
    assert np.linalg.norm(first.summaries[2]) == pytest.approx(1, abs=1e-4)
    assert not np.allclose(first.summaries[0], first.vectors.mean(0))  # the average reads on
    alone = next(encoder.encode([TEXTS[2]]))
    assert np.allclose(alone.vectors, third.vectors, atol=0.05)  # a batch changes nothing


def test_encoder_messages(tmp_path: Path) -> None:
    for name, message in (
        ("hashed:9999", "a size from 1 to 512"),
        ("static:/no/such/file", "no file"),
        ("./nowhere", "no such folder"),
        ("nobody/no-such-model-at-all", "neither known here nor to be had from the hub now"),
    ):
        with pytest.raises(UserError, match=message):
            EncoderConfig(encoder=name).build()
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match=r"no config\.json with"):
        EncoderConfig(encoder=str(tmp_path)).build()
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 4, "model_type": "bert"}))
    with pytest.raises(UserError, match="does not load as a transformer"):
        list(EncoderConfig(encoder=str(tmp_path)).build().encode(["x"]))


def test_static_vectors_in_three_formats(tmp_path: Path) -> None:
    rows = {"red": [1.0, 2.0], "house": [3.0, 5.0]}
    lines = [f"{w} {' '.join(map(str, v))}" for w, v in rows.items()]
    (tmp_path / "glove.txt").write_text("\n".join(lines) + "\n")
    (tmp_path / "w2v.txt").write_text("2 2\n" + "\n".join(lines) + "\n")
    binary = b"2 2\n" + b"".join(
        w.encode() + b" " + np.array(v, np.float32).tobytes() + b"\n" for w, v in rows.items()
    )
    (tmp_path / "w2v.bin").write_bytes(binary)
    for name in ("glove.txt", "w2v.txt", "w2v.bin"):
        encoder = EncoderConfig(encoder=f"static:{tmp_path / name}").build()
        (found,) = encoder.encode(["The Red house!"])
        assert found.vectors.tolist() == [[1, 2], [3, 5]]
        assert found.spans.tolist() == [[4, 7], [8, 13]]
        assert found.summaries[0].tolist() == [2, 3.5]
        assert encoder.fingerprint() == encoder.fingerprint()
    for content, message in (
        ("red 1 2\nhouse 1\n", "line 2 has 1 numbers, 2 expected"),
        ("red one two\nx 1 2\n", "line 1 is not 'word number"),
        ("", "no vectors in it"),
    ):
        (tmp_path / "bad.txt").write_text(content)
        with pytest.raises(UserError, match=message):
            EncoderConfig(encoder=f"static:{tmp_path / 'bad.txt'}").build().dim  # type: ignore[attr-defined]  # noqa: B018
    (tmp_path / "cut.bin").write_bytes(binary[:-6])
    with pytest.raises(UserError, match="ends at word 1 of 2"):
        EncoderConfig(encoder=f"static:{tmp_path / 'cut.bin'}").build().dim  # noqa: B018


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_store_encodes_nothing_twice(tmp_path: Path, precision: str) -> None:
    encoder = HashedEncoder(16, 64)
    make = lambda: ContentStore.create(tmp_path / "s", 16, precision, encoder.fingerprint())  # noqa: E731
    seen: list[int] = []
    assert make().add(TEXTS, encoder, lambda done, total, speed: seen.append(done))[:2] == (3, 7)
    assert seen == [3]
    store = make()
    assert store.add(TEXTS, encoder)[0] == 0
    content = store.content(TEXTS, ["average"])
    assert content.words.counts.tolist() == [3, 0, 4, 3]
    assert content.words.starts[0] == content.words.starts[3]
    (first, *_) = encoder.encode(TEXTS)
    rows = content.words.vectors[:3].float().numpy()
    assert np.allclose(rows, first.vectors, atol=0 if precision == "fp32" else 2e-3)
    extra = dict(zip(["dune"], encoder.encode(["dune"]), strict=True))
    more = store.content(["dune", *TEXTS], ["average"], extra)
    assert more.words.counts.tolist() == [1, 3, 0, 4, 3]


def test_interrupted_store_goes_on(tmp_path: Path) -> None:
    encoder = HashedEncoder(16, 64)
    whole = ContentStore.create(tmp_path / "whole", 16, "fp32", encoder.fingerprint())
    whole.add(TEXTS, encoder)
    store = ContentStore.create(tmp_path / "cut", 16, "fp32", encoder.fingerprint())
    store.add(TEXTS[:1], encoder)
    for name in ("vectors.bin", "summaries.bin", "spans.bin"):  # data without its index line
        with (tmp_path / "cut" / name).open("ab") as file:
            file.write(b"\1\2\3\4\5")
    with (tmp_path / "cut" / "texts.txt").open("a") as file:
        file.write("0123abc")
    again = ContentStore.create(tmp_path / "cut", 16, "fp32", encoder.fingerprint())
    again.add(TEXTS, encoder)
    for name in ("vectors.bin", "summaries.bin", "spans.bin", "texts.txt"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_two_processes_share_a_store(tmp_path: Path) -> None:
    """Both want the same many texts at once; each text is written once."""
    import subprocess
    import sys

    lines = "\n".join(f"i{n},word{n} and more" for n in range(900))
    (tmp_path / "items.csv").write_text(f"item,text\n{lines}\n")
    order = ["encode", str(tmp_path / "items.csv"), "--encoder", "hashed:16", "--out"]
    command = [sys.executable, "-m", "corginet", *order, str(tmp_path / "s"), "--json"]
    (tmp_path / "first.csv").write_text("item,text\ni,one\n")  # the store itself is there
    subprocess.run([c.replace("items.csv", "first.csv") for c in command], check=True)
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    encoded = [json.loads(p.communicate()[0])["encoded"] for p in both]
    assert sum(encoded) == 900
    store = ContentStore.open(tmp_path / "s")
    assert len(store.counts) == len(store.row_of) == 901
    assert (tmp_path / "s" / "vectors.bin").stat().st_size == sum(store.counts) * 16 * 2


def test_store_messages(tmp_path: Path) -> None:
    encoder = HashedEncoder(16, 64)
    ContentStore.create(tmp_path / "s", 16, "fp32", encoder.fingerprint())
    with pytest.raises(UserError, match="holds vectors of another encoder"):
        ContentStore.create(tmp_path / "s", 16, "bf16", encoder.fingerprint())
    with pytest.raises(UserError, match="not a content store"):
        ContentStore.open(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    with pytest.raises(UserError, match="not a content store and not empty"):
        ContentStore.create(tmp_path / "full", 16, "fp32", encoder.fingerprint())


def test_one_hot_words_are_a_bag() -> None:
    (found,) = OneHotEncoder(["red", "blue"]).encode(["blue green red blue"])
    assert found.vectors.tolist() == [[0, 1], [1, 0]]
    assert cache_folder(HashedEncoder(16, 64), "bf16").name == "hashed-16-64-bf16"


@pytest.mark.slow
def test_packaged_minilm_reads_meaning() -> None:
    encoder = EncoderConfig().build()
    texts = ["a novel about dragons", "a story of fire-breathing beasts", "tax law for companies"]
    a, b, c = (e.summaries[2] for e in encoder.encode(texts))
    assert a @ b > a @ c + 0.1


def test_static_vectors_without_a_file_are_the_packaged_models_own() -> None:
    encoder = EncoderConfig(encoder="static", truncate=5).build()
    one, two, none = encoder.encode(["a river bank", "the bank robbery, seen twice", ""])
    assert encoder.dim == one.vectors.shape[1] == 384 and len(two.vectors) == 5
    assert (one.vectors[2] == two.vectors[1]).all()  # 'bank', whatever is beside it
    assert one.spans.tolist() == [[0, 1], [2, 7], [8, 12]]
    assert not len(none.vectors) and not none.summaries.any()
    assert (
        encoder.fingerprint() != EncoderConfig(encoder="static", truncate=6).build().fingerprint()
    )
