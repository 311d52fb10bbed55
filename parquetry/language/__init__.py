"""Languages: stems and stop words of natural ones, grammars of source code."""
