"""Why a choice is what it is: what `explain` says, in a sentence, in tables and as JSON.

explain       gathers it, for a problem on this machine or another
explanation   what was gathered, as text and as JSON
brief         the pick, its time and bound, and the second best alone
tables        terms, constants, candidates and refusals
tuning        what one `make tune` would decide
published     our kernels by published constants
known         a GPU that nobody measured: the vendor's numbers, and what others published
"""
