"""Warps that share an SM, each at its own pace, in SM cycles: they queue at its units.

work        what an SM gives, what a block does, and what that takes
waits       what a block waits for beside its units, and its instructions
block       what a slice of keys asks of each unit and waits for, and with it a block's stay on an SM
gathered    what parts of a row's keys take to be left and brought together
dealt       slices of a block, blocks of the busiest SM, and slices that hide some key
at_least    what memory takes where unequal blocks come one after another; waves of like ones are choose.waves
predicted   blocks times counts over one clock: a Prediction

Queues are choose.queues, what a score costs beside the products choose.scores, lines that a row touches choose.lines,
and every number is in choose.coefficients.table.
"""
