"""What was timed, a line of data/attention each, and of which code it was."""
