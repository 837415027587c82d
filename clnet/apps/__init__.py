"""clnet inside other programs."""
