"""The numeric families whose rows make and run their own instructions, in one table."""

import dot
import matrix
import scaled_matrix
import small_float
import sparse_matrix
import vector_byte

TABLE = {name: row for family in (dot, matrix, scaled_matrix, small_float, sparse_matrix, vector_byte)
         for name, row in family.TABLE.items()}


def prepare(random, state, inst):
    """Changes the initial state so that results say something."""
    for family in (matrix, scaled_matrix, sparse_matrix):
        if getattr(inst, "name", None) in family.TABLE:
            family.prepare(random, state, inst)
