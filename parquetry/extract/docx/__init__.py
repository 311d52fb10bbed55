"""Word documents: OOXML, simplified and converted by mammoth."""
