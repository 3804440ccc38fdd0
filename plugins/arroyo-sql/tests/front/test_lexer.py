"""Scripts that are made to take long are read once, from their beginning to their end."""

from __future__ import annotations

import pytest
from arroyo_sql.lexer import Kind, SourceText, tokenize

from arroyo_core.errors import InvalidPipelineError
from arroyo_core.pipeline.mistakes import Mistakes

#: So much that a reader which looks to the end from each place would not come there.
COUNT = 1_500_000


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "text",
    ["E'" + "\\a" * COUNT + "'", "E'" + "''" * COUNT + "'", "'" + '"' * COUNT + "'", "/*" * COUNT + "*/" * COUNT],
    ids=["escapes", "quotes", "other quotes", "comments"],
)
def test_long_texts_and_comments_are_read_once(text: str) -> None:
    mistakes = Mistakes()
    tokens = tokenize(SourceText("script", text), mistakes)
    assert not mistakes
    assert [token.kind for token in tokens] == ([] if text.startswith("/*") else [Kind.STRING])


def test_escapes_and_references_are_read_as_before() -> None:
    mistakes = Mistakes()
    tokens = tokenize(SourceText("script", r"""E'it''s \'a\' \\' ${NAME:-a b} 'x\' "a""b" `c``d`"""), mistakes)
    assert not mistakes
    assert [token.value for token in tokens] == ["it's 'a' \\", "${NAME:-a b}", "x\\", 'a"b', "c`d"]
    assert [token.kind for token in tokens[1:2]] == [Kind.REFERENCE]


@pytest.mark.parametrize("text", ["${NAME", "${NAME\n}", "${" + "a" * 20_000 + "}"])
def test_a_reference_that_does_not_end_is_a_mistake(text: str) -> None:
    mistakes = Mistakes()
    tokenize(SourceText("script", text), mistakes)
    with pytest.raises(InvalidPipelineError, match="begins no reference"):
        mistakes.raise_if_any()
