"""The confidence below which an inference decides nothing."""

# At a half, the answer and its opposite are equally likely. Below it, `atoll measure` reports that
# it cannot tell, and no command uses the chiplets: assuming none is safer than a guess.
LEAST_CONFIDENCE = 0.5
