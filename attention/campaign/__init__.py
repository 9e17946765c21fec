"""The timing campaign by which the model is judged: sets of problems, their timings on a GPU, and regrets from those.

Set A is typed and timed freely. Set B is drawn from the commit that froze the model, and timed only after it.
"""
