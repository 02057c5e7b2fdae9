"""All operators, in alphabetical order: a new operator is one more line."""

from . import attention_decode, attention_forward

OPERATORS = (attention_decode.OPERATOR, attention_forward.OPERATOR)
