"""The store that lies: an embedded memory service with every fault that the field has reported.

`LegacyStore` is the store itself: pure, synchronous, deterministic from a seed, on any clock.
`faults` names what it can do wrong; without a fault it is an honest store. `server` puts it on a
socket and `demo` tells the story of one forget, with and without a sidecar in front.
"""
