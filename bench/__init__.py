"""How much the sidecar costs, beside proxies that decide nothing: `python -m bench`, or `make bench`."""
