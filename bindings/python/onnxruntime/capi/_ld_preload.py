"""Nothing has to be loaded first."""
