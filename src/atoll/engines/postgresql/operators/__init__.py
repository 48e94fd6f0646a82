"""Statement kinds as long-lived operators: a backend, and a client, for each."""
