"""Questions with what must come back for them: kept per agent, asked, compared."""
