"""For engines that keep their tables themselves: loads a suite once into the cache, from which
each instance copies it."""
