"""Pages of the web, and the lists that name them."""
