"""What holds of every kernel, without a GPU and on one: what data/verification keeps.

matrix.run(matrix.jobs(probes))     each build on each architecture, compiled and held against its contract
latencies.golden()                  the stall counts that ptxas schedules between dependent instructions
tables                              both as rows and as files
probed.verify(probes, device, ...)  each probe's results on a GPU, held against NumPy's
differential.compare.verify(...)    each wrapper of PTX on a GPU, held against the emulator
blind.found.rows_of(kernels)        which planted bugs the emulator finds
results                             what ran on a GPU, as files
"""
