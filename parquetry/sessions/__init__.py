"""Knowledge from finished chat sessions: reading, distilling, and comparing with known entries."""
