"""What Quietus decides, and nothing else: no await, no clock, no randomness, no logging.

A `Call` asks; the `Gate` knows the erasures; `decide` answers before a call is forwarded and again
before its answer leaves; `screen` says which rows may leave. `advance` is the one table by which an
erasure changes state; `due` says what to do next from the stored state alone.
"""
