"""What a caller gives, judged before there is a problem: numbers, flags and shapes. No torch here."""
