"""Files: those that paths stand for, compressed ones, and writing one whole."""
