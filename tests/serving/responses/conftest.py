"""The corpus of the chats' tests, with two people's documents; its namespace is a vector store."""

from tests.serving.chat.conftest import shelf

__all__ = ["shelf"]
