"""Our CUDA attention kernels on random problems, held against float64: what `smscope verify` runs of them on a GPU.

builds, problems, inputs     what is drawn: kernels, sizes and features, tensors amid NaN
oracle                       what a result should be, and by how much it may err
worker, supervisor           one process that runs problems, and who keeps a campaign going where it dies
sanitizer                    a few of these problems under compute-sanitizer
campaign, kernel             what one campaign is, and one kernel's campaign from compiler to result
"""
