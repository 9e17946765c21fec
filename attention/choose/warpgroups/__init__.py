"""Warpgroups that share an SM, in SM cycles: what a step costs, what lies around steps, and how rows are dealt.

step           parts of a tile of keys, of a tile of rows, and of a tile whose keys are partly hidden
handed         what lies between a tile of rows and the next: who asks for it, and when it comes
ring           how often a ring's place can be filled anew
masks          what a mask costs a step, and a tile of rows; laid_out, where it is laid out anew before
again          what a tile takes that no guess serves
code           lines of code that come first, again, or from far off
gathered       what parts of a row's keys take to be brought together
parts          rates of one SM, and what is made of them
dealt          how many of each the busiest SM works through; packed sequences by their longest and the rest; and
               steps in which causality leaves some warpgroups nothing to do
edges          tiles of keys whose scores an edge has masked one by one
predicted      parts times counts over one clock: a Prediction

What a score costs beside the products is choose.scores, lines that a row touches are choose.lines, and every number is
in choose.coefficients.table.
"""
