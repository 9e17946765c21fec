"""What a result should be, in float64, and how far from it one may be."""
