"""Declarations of operators and their kernels. Imports nothing of generate/."""
