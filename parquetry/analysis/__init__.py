"""Analysis of a whole corpus: which documents are alike, and where each stands on a map. Pure."""
