"""`python -m attention`."""

from microbench import needs

if __name__ == "__main__":
    with needs.one_sentence(program=True):
        from attention.cli import main

        main()
