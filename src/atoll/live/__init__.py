"""Watches all deployments of this user at a bounded cost: `atoll top`, `atoll serve`, metrics."""
