"""Why a choice is what it is: what `explain` says, in a sentence, in tables and as JSON."""
