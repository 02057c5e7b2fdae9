"""For TORCH_PYTHON_NATIVE_USER_GRAPH_ORDER_FN: PyTorch's own overrides of CUDA operators, which this CPU set-up lacks, are not registered."""


def none(_operator, _dispatch_key, _graph):
    return []
