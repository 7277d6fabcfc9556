// Functions without bodies are of other packages: Go wants a file of this kind beside them.
