"""OpenAI's Responses API over models that speak chat completions, with `file_search` over vector stores."""
