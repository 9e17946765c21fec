"""What holds of every kernel without a GPU: the build matrix, and ptxas' own latencies; committed in data/verification.

matrix.run(matrix.jobs(probes))     each build on each architecture, compiled and held against its contract
latencies.golden()                  the stall counts that ptxas schedules between dependent instructions
tables                              both as rows and as files
"""
