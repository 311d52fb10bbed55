"""Language models and the services that serve them: one client, its limits, its budget and its replies."""
