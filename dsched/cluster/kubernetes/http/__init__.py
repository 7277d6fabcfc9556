"""HTTP/1.1 as lists, watches and many small requests at once need it."""
