"""The web, asked safely and politely: for every address that somebody else may have chosen."""
