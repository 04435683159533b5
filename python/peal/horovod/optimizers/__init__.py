"""The classes behind `DistributedOptimizer`."""
