"""The standalone cluster: nodes, pods and the rest in Redis, with the watch log and the compare-and-set bind of an API
server."""
