"""Word documents: OOXML simplified, then read through mammoth."""
