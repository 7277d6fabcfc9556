"""DynamicResources, and what only it needs."""
