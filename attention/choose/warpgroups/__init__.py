"""Warpgroups that share an SM, in SM cycles: what a step costs, what lies around steps, and how rows are dealt.

step           parts of a tile of keys, of a tile of rows, and of a tile whose keys are partly hidden
lines          lines of L2 that a row of K or V touches
dealt          how many of each the busiest SM works through; packed sequences by their longest and the rest
predicted      parts times counts over one clock: a Prediction

What a score costs beside the products is choose.scores, and every number is in choose.coefficients.
"""
