"""A Linux guest that is the machine of a topology file, emulated by QEMU (docs/guest.md)."""
