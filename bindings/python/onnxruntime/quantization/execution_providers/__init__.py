"""Settings for single providers."""
