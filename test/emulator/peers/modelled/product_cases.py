"""Problems of matrix products as benchmarks/*.txt write them, for `flydsl-aot bench` and for a table. A problem: m, n and k (m: the rows of all groups), `for`,
where the sizes come from, and
gemm          layout=nt (B lies as (n, k)) or nn, d_dtype
scaled_gemm   dtype=e4m3 or e2m1 of both operands, dtype_a of another A, scales=plain or shuffled
gemm          sweep=all: every configuration of a peer is tried, sweep=leaders: those of the section's swept problems that were fastest there
grouped_gemm  groups=8 (of equal sizes, or with unlike=SEED of sizes drawn from a gamma distribution of shape 2) or offsets=70,70,200, b_order=kn or nk; with
              dtype=e4m3 also scales=plain or shuffled
"""
import random

BITS = {"bf16": 16, "fp16": 16, "fp32": 32, "e4m3": 8, "e2m1": 4}


def sizes(words):
    return tuple(int(words[name]) for name in ("m", "n", "k"))


def up_to(number, multiple):
    return -(-number // multiple) * multiple


def offsets(words):
    if "offsets" in words:
        return words["offsets"]
    m, groups = int(words["m"]), int(words["groups"])
    draws = random.Random(int(words["unlike"])) if "unlike" in words else None
    shares = [draws.gammavariate(2, 1) if draws else 1.0 for _ in range(groups)]
    return ",".join(str(round(m * sum(shares[: group + 1]) / sum(shares))) for group in range(groups))


def groups_of(words):
    return offsets(words).count(",") + 1


def scales_of(words, operands, k):
    """Shapes of the scales of operands with so many rows."""
    shuffled = words.get("scales") == "shuffled"
    return [f"{up_to(rows, 32)}x{up_to(k // 32, 8)}" if shuffled else f"{rows}x{k // 32}" for rows in operands]


def settings(operator, words):
    """{name: value} as `flydsl-aot bench --set` takes them."""
    m, n, k = sizes(words)
    if operator == "gemm":
        nt = words.get("layout", "nt") == "nt"
        made = dict(a=f"{m}x{k}", b=f"{n}x{k}" if nt else f"{k}x{n}", transpose_b="yes" if nt else "no")
    elif operator == "scaled_gemm":
        packed = k * BITS[words["dtype"]] // 8
        scales = scales_of(words, (m, n), k)
        made = dict(a=f"{m}x{packed}", b=f"{n}x{packed}", a_scale=scales[0], b_scale=scales[1])
    else:
        kn = words.get("b_order", "kn") == "kn"
        groups = groups_of(words)
        made = dict(a=f"{m}x{k}", b=f"{groups}x" + (f"{k}x{n}" if kn else f"{n}x{k}"), offsets=offsets(words))
        if bits(words) == 8:
            a_scale, b_scale = scales_of(words, (m, n), k)
            made |= dict(a_scale=a_scale, b_scale=f"{groups}x{b_scale}")
    return made | {name: words[name] for name in ("dtype", "dtype_a", "scales", "d_dtype", "b_order") if name in words}


def kind(words):
    """Large products, and those that say so, share the fastest configurations; others have their own. Groups do with those that have about as many rows."""
    if "groups" in words:
        rows = int(words["m"]) // int(words["groups"])
        shared = tuple((name, words.get(name)) for name in ("b_order", "dtype", "scales", "d_dtype"))
        # Triton's kernels search at most 8 groups, or 256 (fetch/compile_triton_gemm.py).
        return "many rows" if rows >= 1024 else "some rows" if rows >= 256 else "few rows", int(words["groups"]) > 8, *shared
    other = tuple(sorted(item for item in words.items() if item[0] not in ("m", "n", "k", "for", "sweep")))
    return other if min(sizes(words)) >= 4096 or "sweep" in words else (*other, *sizes(words))


def title(words):
    m, n, k = sizes(words)
    parts = [f"{m} x {n} x {k}"]
    if "groups" in words:
        parts.append(f"{words['groups']} groups" + (" of unlike sizes" if "unlike" in words else ""))
    if "offsets" in words:
        parts.append(f"groups to {words['offsets']}")
    parts += [f"{name} {words[name]}" for name in ("dtype_a", "scales", "d_dtype") if name in words]
    parts += [{"nn": "B (k, n)", "nt": "B (n, k)"}[words["layout"]]] if "layout" in words else []
    return ", ".join(parts) + (f" ({words['for'].replace('_', ' ')})" if "for" in words else "")


def bits(words):
    return BITS[words.get("dtype", "bf16")]


def bytes_of(operator, words):
    """Operands and result once."""
    m, n, k = sizes(words)
    matrices = groups_of(words) if operator == "grouped_gemm" else 1
    operands = (m + n * matrices) * k
    scales = operands // 32 if operator != "gemm" and bits(words) < 16 else 0
    return operands * bits(words) // 8 + scales + m * n * BITS[words.get("d_dtype", "bf16")] // 8
