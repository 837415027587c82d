"""What leaves a network, in pixels of the stored images: detections, links, and the lesions they make."""
