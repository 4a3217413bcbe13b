"""From where on each check speaks."""

ANOMALOUS = 0.55  # of the forest's score in (0, 1)
LOOPING = 0.2  # compressed size over size; ordinary transcripts lie above 0.35 with every compressor here, loops below 0.15
COPIED = 0.5  # estimated share of lines in common with a known solution
SHINGLE_CHARS = 8  # shorter lines say nothing about where a text comes from
