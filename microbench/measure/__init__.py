"""How things are timed: `cuda` on a GPU, `host` on a CPU. A probe imports the one it needs."""
