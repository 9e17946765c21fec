"""The FLOPs that a told speed counts: those of the scores that are seen.

AttentionProblem.flops halves every causal problem: the field's convention, and right for squares. Of a rectangle the
band may let through nearly all or nearly nothing. 4096 queries aligned top-left see a quarter of their scores with 8192
keys, so that half of all would tell a speed that no GPU reaches. Figures on file, whose causal problems are squares,
and the draws of campaigns, which must come out the same in a later tree, keep the convention.
"""

from attention.problem import AttentionProblem


def flops_seen(problem: AttentionProblem) -> float:
    """2*(D+Dv) a score that the band lets through; of a causal square without a window half of all, as published."""
    rows, keys = problem.mean_lengths
    if rows == keys or not problem.causal:
        return problem.flops
    return 2.0 * (problem.head_dim + problem.head_dim_v) * problem.scores
