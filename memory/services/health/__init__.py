"""How Hippo is, part by part, for load balancers, people and Prometheus."""
