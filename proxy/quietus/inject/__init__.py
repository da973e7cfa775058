"""Putting the sidecar into pods: what a webhook does in a cluster, and `quietus inject` without one."""
