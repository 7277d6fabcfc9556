"""What the commands print, as lines of text and as JSON. No I/O."""
