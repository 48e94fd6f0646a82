"""What the Makefile calls: fetching, generating, checking. Nothing here is part of the wheel."""
