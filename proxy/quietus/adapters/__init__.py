"""The wires: one adapter each. They speak; the gateway decides."""
