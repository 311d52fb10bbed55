"""Summaries: the first sentences of a text. Pure."""

from __future__ import annotations

from parquetry.serving.search.sentences import Sentence, sentences

MOST_SENTENCES = 3
"""maximum number of sentences"""
MOST_CHARACTERS = 400
"""maximum length"""
READ = 8_000
"""characters from the start of a text that decide; a longer preamble of headings or tables is the summary itself"""
_ELLIPSIS = "…"


def summary(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return the first sentences of a text on one line, as many whole ones as fit.

    Headings are left out, unless the text has nothing else. If not even one sentence fits, it is cut at a word and ends
    with an ellipsis.

    Args:
        text: text of a document or chunk.
        most: maximum number of characters, at least 2.
    """
    start = text[:READ]
    found = sentences(start)
    if len(start) < len(text) and len(found) > 1:
        # The last one was cut where reading ended.
        found.pop()
    told = [_line(start, each) for each in found if not each.heading] or [_line(start, each) for each in found]
    chosen = ""
    for line in told[:MOST_SENTENCES]:
        longer = f"{chosen} {line}".lstrip()
        if len(longer) > most:
            break
        chosen = longer
    return chosen or _cut(told[0] if told else " ".join(start.split()), most)


def _line(text: str, sentence: Sentence) -> str:
    words = text[sentence.start : sentence.end].split()
    return " ".join(words[1:] if sentence.heading and len(words) > 1 else words)


def _cut(line: str, most: int) -> str:
    if len(line) <= most:
        return line
    kept = line[: most - len(_ELLIPSIS)]
    at_word = kept.rpartition(" ")[0]
    # A script without spaces, or one endless word, is cut anywhere.
    return (at_word if len(at_word) > most // 2 else kept).rstrip() + _ELLIPSIS
