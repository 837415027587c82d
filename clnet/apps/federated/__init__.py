"""Federated training on the bundle as it is: NVFlare carries the weights, MONAI's `MonaiAlgo` trains."""
