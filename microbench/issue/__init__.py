"""How long warps take through machine code, told from its control words and a GPU's rates; nothing runs.

path.py     the instructions that a warp usually passes, through branches and a loop
rates.py    what an SM gets done in a clock: measured of a GPU, or published of one that nobody has here
pipes.py    which unit an instruction takes, and for how long
sm.py       the warps of an SM through such a path: who issues when, by stall counts, scoreboards and busy units
"""
