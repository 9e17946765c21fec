"""All of `smscope verify` on one GPU: parts in a fixed order, within a budget, gone on with, in one file and its page.

record     the file of one run, data/verification/<gpu>/<run id>.json: who, each part's result, gaps by name
resuming   which file a call goes on with: that of the same GPU, driver, NVRTC, sources and options
budget     '9m', and whether a part that usually takes so long still fits
usual      how long a part usually takes, by the files of earlier runs
part       one part of the work, before it is done
campaign   part after part, each on file before the next begins
plan       the parts of one GPU: doctor or the whole suite, probes, wrappers, kernels, sanitizer, peers
board      what was measured of the board, and the doctor's findings in it
packed     a run's own file inside of the one file
received   a file that somebody sent: its run, its kind's profile and itself, each in its place
lacks      what this host has not, by name
page       the file as Markdown: what silicon confirmed, what it refuted, what was not looked at and why
whole      the verb without --only: all of the above, and what is said at its end
"""
