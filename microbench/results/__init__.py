"""From rows to constants: the records of a run, and the profile that they reduce to."""
