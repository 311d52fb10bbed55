"""XML: parsing within bounds, repair, and the vocabularies of articles and books."""
