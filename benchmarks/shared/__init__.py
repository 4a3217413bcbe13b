"""What the four checks are, the same for the product and for its peers: texts, patterns, features, forest, references, thresholds."""
