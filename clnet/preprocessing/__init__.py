"""From two images to the space of the model, and back to their own pixels."""
