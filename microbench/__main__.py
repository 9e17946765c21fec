"""`python -m microbench`."""

from microbench import needs

if __name__ == "__main__":
    with needs.one_sentence(program=True):
        from microbench.cli import main

        main()
