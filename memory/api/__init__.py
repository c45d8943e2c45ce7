"""The API of agents: HTTP in, one service, JSON out."""
