"""All operators, in alphabetical order: a new operator is one more line."""

from . import attention_forward

OPERATORS = (attention_forward.OPERATOR,)
