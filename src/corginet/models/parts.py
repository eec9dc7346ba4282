"""What any model's config answers, so that content is made for it and nothing more."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from corginet.config import Config
from corginet.data.task import Task


class BuildsModel(Config):
    """A model's config: what it reads of the texts, and how to build it. By default, no text."""

    @property
    def reads_words(self) -> bool:
        """Whether it looks at single words' vectors."""
        return False

    @property
    def summaries(self) -> tuple[str, ...]:
        """The kinds of whole-text vectors that it reads."""
        return ()

    @property
    def reads_stems(self) -> bool:
        """Whether it reads which stems a text holds."""
        return False

    @property
    def reads_text(self) -> bool:
        return self.reads_words or self.reads_stems or bool(self.summaries)

    def build(
        self, task: Task, n_users: int, n_items: int, dims: Mapping[str, int], seed: int
    ) -> nn.Module:
        """dims holds the width of the words, of each summary, and of the stems ('bow')."""
        raise NotImplementedError
