"""The pages of operators about agents."""
