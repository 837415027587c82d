"""From two images to the model's space, and back to original pixels."""
