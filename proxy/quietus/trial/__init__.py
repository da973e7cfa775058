"""A canary trial: records of our own, written into a store, forgotten, and watched."""
