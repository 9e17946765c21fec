"""`python -m microbench`."""

from microbench.cli import main

if __name__ == "__main__":
    main()
