"""Cycles of warpgroups that share an SM: a chain of waits, pipes in lockstep, one clock."""
