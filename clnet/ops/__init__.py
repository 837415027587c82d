"""What the networks compute that PyTorch has no function for, or only a slow one."""
