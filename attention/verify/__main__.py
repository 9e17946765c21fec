"""`python -m attention.verify`."""

import sys

from attention.verify.program import main

if __name__ == "__main__":
    sys.exit(main())
