"""From a kernel's source to a launch on torch's stream: compile, load, describe tensors, count tiles."""
