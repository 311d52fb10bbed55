"""OpenAI's dialect, `/v1`: routes, forms and errors as OpenAI's published schema has them."""
