"""flash-attn's functions: its signatures and conventions, by the same operator."""
