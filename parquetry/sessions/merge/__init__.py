"""New statements beside known ones: candidates, judgements, and guards over both."""
