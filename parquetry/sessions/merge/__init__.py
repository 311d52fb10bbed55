"""Comparison of new statements with known entries: candidates, judgements, and guards over both."""
