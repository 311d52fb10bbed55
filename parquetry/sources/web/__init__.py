"""Web pages, and the lists that name them."""
