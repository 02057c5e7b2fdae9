"""Compiles Triton kernels for a GPU that is not there."""
import collections
import json
import multiprocessing
import os
import tempfile

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def arguments(fn, types, constants):
    """(name, type) of what a launch passes: `types` are those of the arguments that are not `constants`, in order."""
    names = [n for n in fn.arg_names if n not in constants]
    return list(zip(names, types, strict=True))


def compile_kernel(fn, types, constants, arch, multiples_of_16, within_2gb=False, **options):
    """Pointers, and the arguments named, are multiples of 16; `within_2gb`: tensors that 32-bit offsets reach."""
    passed = arguments(fn, types, constants)
    signature = dict(passed) | {n: "constexpr" for n in constants}
    constexprs = {(fn.arg_names.index(n),): v for n, v in constants.items()}
    attrs = {}
    for n, t in passed:
        if t[0] == "*" or n in multiples_of_16:
            attrs[(fn.arg_names.index(n),)] = [["tt.divisibility", 16]] + ([["tt.pointer_range", 32]] if within_2gb and t[0] == "*" else [])
    return triton.compile(ASTSource(fn, signature=signature, constexprs=constexprs, attrs=attrs), target=GPUTarget("hip", arch, 64),
                          options=options)


def store(done, path, fn, types, constants, warps):
    """Writes the code object; how to launch it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(done.asm["hsaco"])
    return dict(kernel=fn.__name__, types=types, names=[n for n, _ in arguments(fn, types, constants)], constants=constants,
                block=warps * 64, shared=done.metadata.shared)


def in_parallel(function, items):
    """function(*item) for all, a process a core."""
    with tempfile.TemporaryDirectory(prefix="triton-cache-") as cache:
        os.environ |= dict(TRITON_CACHE_DIR=cache, TRITON_ALWAYS_COMPILE="1", TRITON_DEFAULT_FP_FUSION="1")
        with multiprocessing.get_context("fork").Pool() as pool:
            return pool.starmap(function, items, chunksize=1)


def one(folder, function, arguments):
    return function(folder, *arguments)


def compile_jobs(folder, index_name, jobs):
    """Runs the jobs, (function, its arguments after the folder), each of which gives (kind, name, how to launch it) or (kind, None, why it was dropped)."""
    index, dropped = collections.defaultdict(dict), collections.Counter()
    for kind, name, entry in in_parallel(one, [(folder, *job) for job in jobs]):
        if name:
            index[kind][name] = entry
        else:
            dropped[entry] += 1
    (folder / index_name).write_text(json.dumps(index | dict(dropped=dropped), indent=1))
