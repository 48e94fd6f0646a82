"""The control plane's only seam to the system (see `atoll.host.api`)."""
