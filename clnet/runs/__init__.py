"""The book-keeping of a training or an evaluation: settings, checkpoints, record, MLflow, progress."""
