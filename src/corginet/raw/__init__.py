"""Raw downloads of the paper's two datasets into ratings and items."""
