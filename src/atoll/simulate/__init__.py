"""What a deployment or a command does to the caches of another machine: a guest with simulated
caches, booted for it (docs/simulated.md).

`inside` is what runs in the guest; `prepare` is what has to be on this machine before; `run` boots
the guest, runs it there and brings back what it counted.
"""
