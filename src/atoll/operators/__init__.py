"""Operators on the fewest cores: query-plan-deployment-poster, as a planner and as deployments."""
