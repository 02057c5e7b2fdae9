"""Matrix products in Triton, in the form that Triton users on AMD run: dense, with MX scales, and grouped; peers in the timing model.

Triton's tutorial, AITER's gemm_a16w16 and gemm_afp4wfp4, and PyTorch's grouped_mm template are alike in what matters: tiles in an order that reuses
rows and columns (groups of GROUP tiles of rows), consecutive tiles on one XCD, copies straight to LDS, a split of K summed by a second kernel. Rows
and columns past the end are other ones taken twice (the tutorial's remainder), so that only the end of K is masked.
"""
import triton
import triton.language as tl

XCDS = tl.constexpr(8)


@triton.jit
def on_one_xcd(program, programs):
    """Programs p, p + 8, p + 16, ... run on one XCD: a permutation of the programs that makes them consecutive."""
    each, longer = programs // XCDS, programs % XCDS
    xcd = program % XCDS
    return xcd * each + tl.minimum(xcd, longer) + program // XCDS


@triton.jit
def tile_of(t, tiles_m, tiles_n, GROUP: tl.constexpr):
    """(row, column) of tile t: GROUP rows of tiles are walked through column by column."""
    first = t // (GROUP * tiles_n) * GROUP
    rows = tl.minimum(tiles_m - first, GROUP)
    within = t % (GROUP * tiles_n)
    return first + within % rows, within // rows


@triton.jit
def products(a, b, lda, ldb, rows, cols, first, last, A_T: tl.constexpr, B_T: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
             TAIL: tl.constexpr):
    """(BM, BN) sums over k from first to last. A_T: A lies as (k, m); B_T: B lies as (n, k)."""
    ks = first + tl.arange(0, BK)
    if A_T:
        ap, a_step = a + ks[None, :] * lda + rows[:, None], BK * lda
    else:
        ap, a_step = a + rows[:, None] * lda + ks[None, :], BK
    if B_T:
        bp, b_step = b + cols[None, :] * ldb + ks[:, None], BK
    else:
        bp, b_step = b + ks[:, None] * ldb + cols[None, :], BK * ldb
    acc = tl.zeros([BM, BN], tl.float32)
    for j in range(first, last, BK):
        if TAIL:
            at = tl.load(ap, mask=(ks < last - (j - first))[None, :], other=0.0)
            bt = tl.load(bp, mask=(ks < last - (j - first))[:, None], other=0.0)
        else:
            at, bt = tl.load(ap), tl.load(bp)
        acc = tl.dot(at, bt, acc)
        ap += a_step
        bp += b_step
    return acc


@triton.jit
def gemm(a, b, c, m, n, k, lda, ldb, ldc, A_T: tl.constexpr, B_T: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
         GROUP: tl.constexpr, SPLITS: tl.constexpr, TAIL: tl.constexpr):
    """C (m, n) = A B; with SPLITS, C holds that many partial products one after the other, in FP32. Grid: tiles x SPLITS."""
    program = tl.program_id(0)
    part = program % SPLITS
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    row, col = tile_of(on_one_xcd(program // SPLITS, tiles_m * tiles_n), tiles_m, tiles_n, GROUP)
    rows, cols = row * BM + tl.arange(0, BM), col * BN + tl.arange(0, BN)
    share = tl.cdiv(tl.cdiv(k, BK), SPLITS) * BK
    acc = products(a, b, lda, ldb, rows % m, cols % n, part * share, tl.minimum(part * share + share, k), A_T, B_T, BM, BN, BK, TAIL)
    tl.store(c + part * m * ldc + rows[:, None] * ldc + cols[None, :], acc.to(c.dtype.element_ty), mask=(rows[:, None] < m) & (cols[None, :] < n))


@triton.jit
def join(parts, c, count, SPLITS: tl.constexpr, BLOCK: tl.constexpr):
    """C, of `count` elements, is the sum of SPLITS partial products in their order."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(parts + at, mask=at < count, other=0.0)
    for part in tl.static_range(1, SPLITS):
        total += tl.load(parts + part * count + at, mask=at < count, other=0.0)
    tl.store(c + at, total.to(c.dtype.element_ty), mask=at < count)


@triton.jit
def scale_pointers(scales, lead, block, rows, j, BLOCK: tl.constexpr, BK: tl.constexpr, SHUFFLED: tl.constexpr):
    """Of a (BLOCK, BK / 32) block of E8M0 scales at K block j. SHUFFLED: tiles of 32 rows and 8 columns, 256 bytes each, in the order that the matrix
    instructions take (AITER's and PyTorch's layout): (column mod 4, row mod 16, column / 4, row / 16)."""
    if SHUFFLED:
        at = block * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
        return scales + at[:, None] * (lead * 32) + (j * BK + tl.arange(0, BK))[None, :]
    else:
        return scales + rows[:, None] * lead + (j * (BK // 32) + tl.arange(0, BK // 32))[None, :]


@triton.jit
def in_order(loaded, BLOCK: tl.constexpr, BK: tl.constexpr, SHUFFLED: tl.constexpr):
    if SHUFFLED:
        tiles = loaded.reshape(BLOCK // 32, BK // 256, 4, 16, 2, 2)
        loaded = tiles.permute(0, 5, 3, 1, 4, 2).reshape(BLOCK, BK // 32)
    return loaded


@triton.jit
def scaled_products(a, b, sa, sb, lda, ldb, lead, block_m, block_n, rows, cols, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                    FA: tl.constexpr, FB: tl.constexpr, SHUFFLED: tl.constexpr):
    PA: tl.constexpr = 2 if FA == "e2m1" else 1
    PB: tl.constexpr = 2 if FB == "e2m1" else 1
    ap = a + rows[:, None] * lda + tl.arange(0, BK // PA)[None, :]
    bp = b + cols[None, :] * ldb + tl.arange(0, BK // PB)[:, None]
    ta = scale_pointers(sa, lead, block_m, rows, 0, BM, BK, SHUFFLED)
    tb = scale_pointers(sb, lead, block_n, cols, 0, BN, BK, SHUFFLED)
    acc = tl.zeros([BM, BN], tl.float32)
    for _ in range(0, k, BK):
        xa, xb = in_order(tl.load(ta), BM, BK, SHUFFLED), in_order(tl.load(tb), BN, BK, SHUFFLED)
        acc = tl.dot_scaled(tl.load(ap), xa, FA, tl.load(bp), xb, FB, acc)
        ap += BK // PA
        bp += BK // PB
        ta += BK if SHUFFLED else BK // 32
        tb += BK if SHUFFLED else BK // 32
    return acc


@triton.jit
def scaled_gemm(a, b, sa, sb, c, m, n, k, lda, ldb, lead, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
                FA: tl.constexpr, FB: tl.constexpr, SHUFFLED: tl.constexpr):
    """C (m, n) = A (m, k) B (n, k)^T with a scale for each 32 of K; FP4 lies two a byte; `lead`: scales of a row; k is a multiple of BK."""
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    row, col = tile_of(on_one_xcd(tl.program_id(0), tiles_m * tiles_n), tiles_m, tiles_n, GROUP)
    rows, cols = row * BM + tl.arange(0, BM), col * BN + tl.arange(0, BN)
    acc = scaled_products(a, b, sa, sb, lda, ldb, lead, row, col, rows % m, cols % n, k, BM, BN, BK, FA, FB, SHUFFLED)
    tl.store(c + rows[:, None] * ldc + cols[None, :], acc.to(c.dtype.element_ty), mask=(rows[:, None] < m) & (cols[None, :] < n))


@triton.jit
def find_group(ends, groups, tile, tiles_n, BM: tl.constexpr, GROUPS: tl.constexpr):
    """(group, its first row and the row after its last, tiles before it, all tiles) of a tile; GROUPS: a power of two, at least `groups`."""
    at = tl.arange(0, GROUPS)
    last = tl.load(ends + at, mask=at < groups, other=0)
    first = tl.load(ends + at - 1, mask=(at > 0) & (at < groups), other=0)
    tiles = tl.where(at < groups, (last - first + BM - 1) // BM, 0) * tiles_n
    until = tl.cumsum(tiles, 0)
    group = tl.sum((until <= tile).to(tl.int32), 0)
    here = at == group
    return (group, tl.sum(tl.where(here, first, 0), 0), tl.sum(tl.where(here, last, 0), 0), tl.sum(tl.where(here, until - tiles, 0), 0),
            tl.sum(tiles, 0))


@triton.jit
def grouped_gemm(a, b, c, sa, sb, ends, groups, m, n, k, lda, ldb, ldc, B_T: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
                 GROUP: tl.constexpr, TAIL: tl.constexpr, GROUPS: tl.constexpr, SCALED: tl.constexpr):
    """Rows of group g of C (m, n) = its rows of A (m, k) times B[g]; `ends`: the row after the last of each group. Programs walk over the tiles, an
    eighth of them on each XCD. The grid is a multiple of 8. SCALED: e4m3 with plain E8M0 scales, B lies as (groups, n, k)."""
    tiles_n = tl.cdiv(n, BN)
    xcd, programs = tl.program_id(0) % XCDS, tl.num_programs(0) // XCDS
    _, _, _, _, total = find_group(ends, groups, 0, tiles_n, BM, GROUPS)
    each = (total + XCDS - 1) // XCDS
    for t in range(tl.program_id(0) // XCDS, tl.minimum(each, total - xcd * each), programs):
        tile = xcd * each + t
        group, first, last, before, _ = find_group(ends, groups, tile, tiles_n, BM, GROUPS)
        row, col = tile_of(tile - before, (last - first + BM - 1) // BM, tiles_n, GROUP)
        rows, cols = first + row * BM + tl.arange(0, BM), col * BN + tl.arange(0, BN)
        wrapped = tl.where(rows < last, rows, first)
        matrix = b + group.to(tl.int64) * k * n
        if SCALED:
            acc = scaled_products(a, matrix, sa, sb + group.to(tl.int64) * n * (k // 32), lda, ldb, k // 32, 0, 0, wrapped, cols % n, k, BM, BN, BK, "e4m3",
                                  "e4m3", False)
        else:
            acc = products(a, matrix, lda, ldb, wrapped, cols % n, 0, k, False, B_T, BM, BN, BK, TAIL)
        tl.store(c + rows[:, None] * ldc + cols[None, :], acc.to(c.dtype.element_ty), mask=(rows[:, None] < last) & (cols[None, :] < n))
