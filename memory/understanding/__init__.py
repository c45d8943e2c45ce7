"""What a query says beside its words: times, quotes, operators; and what of a long one tells.

Pure functions of text, the same whatever engine is searched.
"""
