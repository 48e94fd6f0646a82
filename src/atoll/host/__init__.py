"""The only way from the control plane to the system (see `atoll.host.api`)."""
