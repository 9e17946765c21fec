"""Every number of the model that is no constant of a profile, each with its derivation."""
