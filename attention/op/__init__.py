"""The torch operators, what they compute, and the ways past torch's dispatcher and through it."""
