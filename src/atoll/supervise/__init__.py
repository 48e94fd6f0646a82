"""Launch, watch, stop. `launch.launch` is the way in; docs/deployments.md tells the whole."""
