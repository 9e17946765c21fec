"""`python -m attention`."""

from attention.cli import main

if __name__ == "__main__":
    main()
