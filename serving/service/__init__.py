"""The service behind every dialect: it follows the corpus, keeps uploads and queues writes. Knows nothing of HTTP."""
