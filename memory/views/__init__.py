"""The pages about memories, for those whom they are about."""
