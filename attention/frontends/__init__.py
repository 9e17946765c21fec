"""The functions that callers know, and the way of a call from there to the operator."""
