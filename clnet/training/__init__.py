"""What training needs beside the network: assignment, losses, batches."""
