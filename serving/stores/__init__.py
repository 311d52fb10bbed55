"""Files and vector stores of OpenAI's dialect as documents of a corpus; knows no web framework."""
