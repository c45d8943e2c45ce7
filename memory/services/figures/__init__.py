"""What was done, counted by day, and what it comes to."""
