"""Samples, and how they are dealt to clients."""
