"""How two sets of constants stand to each other, and whether a board is what boards of its kind are.

tolerance   how far two measurements of one quantity may lie apart, and which way is better
standing    SAME, FASTER, SLOWER or AMBIGUOUS, constant by constant
findings    what is off with a board, one sentence each
state       what NVML says of it: ECC, clocks, link, power
"""
