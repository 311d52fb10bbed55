"""Language models: the client for OpenAI-compatible services, its rate limits, its budget and its replies."""
