"""SQL of embedding models and their partitions."""
