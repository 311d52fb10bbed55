"""Statements without content are recognised by their opening, and nothing else is mistaken for one."""

from __future__ import annotations

import pytest

from parquetry.sessions.distill.learn import TEXT_CHARACTERS
from parquetry.sessions.distill.small_talk import small_talk

TALK = "is a greeting, thanks, an offer of help or a turn of talk"
ABOUT = "is about the conversation itself"
QUESTION = "is a question"
HEADING = "is a heading"


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("Hello, how are you", TALK),
        ("Hi there! I hope you have a good day.", TALK),
        ("“Good morning, everyone.”", TALK),
        ("Sure, I can help", TALK),
        ("You're welcome", TALK),
        ("You’re welcome!", TALK),
        ("Thank you for your help.", TALK),
        ("Thanks so much, that was it.", TALK),
        ("I'm here to help you with anything.", TALK),
        ("I would be happy to assist.", TALK),
        ("It's nice to meet you! I'm a skateboarder too.", TALK),
        ("That's great to hear!", TALK),
        ("I'm sorry to hear that.", TALK),
        ("As an AI language model, I cannot do that.", TALK),
        ("Please let me know if there is anything else.", TALK),
        ("Have a nice day!", TALK),
        ("Danke schön!", TALK),
        ("Guten Tag, wie kann ich helfen", TALK),
        ("Bonjour !", TALK),
        ("De nada.", TALK),
        ("You too!", TALK),
        ("## Sync of several sessions", HEADING),
        ("How to implement a timing decorator yourself!", HEADING),
        ("Sync Multiple Sessions - Code Review", HEADING),
        ("What is a decorator?", QUESTION),
        ("Wann wird der Ofen gereinigt?", QUESTION),
        ("窯はいつ掃除しますか？", QUESTION),
        ("The user asked about the weather.", ABOUT),
        ("The assistant greeted the user.", ABOUT),
        ("User 1 and User 2 are talking about music.", ABOUT),
        ("Both speakers introduce themselves.", ABOUT),
        ("This conversation is about skateboarding.", ABOUT),
        ("In this chat, the user has a problem.", ABOUT),
    ],
)
def test_greetings_thanks_questions_and_talk_about_the_talk_are_no_knowledge(statement: str, why: str):
    assert small_talk(statement) == why


@pytest.mark.parametrize(
    "statement",
    [
        "Thanks to caching, the build takes two minutes.",
        "Hello World is printed by the first program.",
        "Sure Start is a programme in the United Kingdom.",
        "No problem was found in the importer.",
        "No merge goes out on a Friday.",
        "Welcome e-mails are sent by the CRM.",
        "Well water is tested every month.",
        "Nice levels of batch jobs are 10.",
        "OK Go played at the summer party.",
        "Oh-my-zsh is installed on all laptops.",
        "Great Expectations checks the tables.",
        "I am happy with Rust.",
        "I am fine with tabs.",
        "That is why the importer filters empty lines.",
        "It is nice that walnut dries in kiln 3.",
        "Session tokens expire after 30 minutes.",
        "The session table is vacuumed nightly.",
        "The session is stored in Redis.",
        "The message queue runs in Lund.",
        "The chat service runs in Frankfurt.",
        "The user wants code examples in Rust.",
        "The user talks at meetups in Lund.",
        "Ada asked for code examples in Rust.",
        "The user offers courses in Lund.",
        "The assistant manager orders the walnut.",
        "People answer support mails within two days.",
        "Users discuss features in the forum.",
        'The first page asks "What do you dry?" and has two buttons.',
        "How to deploy is described in the wiki.",
        "Ada Uses Rust",
        "Ada Berg Leads Kiln Works.",
        "#general is the channel of the workshop.",
        "Vale is the spelling checker of the docs.",
        "Claro is a customer in Brazil.",
    ],
)
def test_what_only_begins_like_it_is_knowledge(statement: str):
    assert small_talk(statement) is None


@pytest.mark.parametrize("word", ["hello ", "the user ", "in the ", "i am ", "thank you ", "that is so "])
def test_the_longest_statement_is_looked_at_once(word: str):
    """No part is matched repeatedly: ten thousand repetitions would take minutes."""
    statement = (word * TEXT_CHARACTERS)[:TEXT_CHARACTERS]
    for _ in range(10_000):
        small_talk(statement)
