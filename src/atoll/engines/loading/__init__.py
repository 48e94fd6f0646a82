"""Tables that an engine keeps itself: loaded once into the cache, copied into each instance."""
