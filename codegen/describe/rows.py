"""What the operators that go over rows share: architectures, element types, how a row is spread over threads.

A row is read by a team of threads, 16 bytes times `vectors` each; kernels/common/row_tile.hip.h.
"""

from dataclasses import dataclass

# Kernels without instructions of one architecture. gfx9: waves of 64, the others of 32. (NVIDIA's are there to verify and time
# them on: no product has archives of those.)
ARCHITECTURES = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1201", "gfx1250", "sm_90")


# Those whose kernels were run: on the emulator, or on the device. The library calls kernels of others only where it is told to.
EXECUTED_ARCHITECTURES = ("gfx90a", "gfx942", "gfx950", "sm_90")
# Those of AMD's that have WMMA: of operators with matrix products they have the portable instances.
WMMA_ARCHITECTURES = tuple(arch for arch in ARCHITECTURES if arch.startswith(("gfx11", "gfx12")))


def wave_size(arch):
    return 64 if arch.startswith("gfx9") else 32


REALS = {"bf16": 4, "fp16": 3, "fp32": 2}  # flydsl_aot_dtype
BYTES = {"bf16": 2, "fp16": 2, "fp32": 4}

LARGEST_ROW = (1 << 31) - 1
HELD_ARCHITECTURES = ("gfx950", "sm_90")  # with more than 128 KiB of LDS


@dataclass(frozen=True)
class Spread:
    """`wide`: 16 bytes at once, of rows that are aligned to it. `looped`: longer rows, tile by tile. `held`: rows that are in LDS."""

    threads: int
    team: int
    vectors: int
    wide: bool = True
    looped: bool = False
    held: bool = False

    def capacity(self, dtype):
        return LARGEST_ROW if self.looped else self.team * self.vectors * 16 // BYTES[dtype]

    @property
    def name(self):
        return f"t{self.team}x{self.vectors}{'' if self.wide else '_narrow'}{'_looped' if self.looped else ''}{'_held' if self.held else ''}"

    @property
    def row_in(self):
        """RowIn of kernels/common/norm_row."""
        return "RowIn::" + ("memory" if self.looped else "lds" if self.held else "registers")

    def tile(self, dtype):
        return f"RowTile<{dtype}, {self.team}, {self.vectors}, {str(self.wide).lower()}>"

    @property
    def align_bytes(self):
        return 16 if self.wide else 1

    @property
    def waves_per_simd(self):
        """As many as hide the latency of memory while the registers hold the row."""
        return 8 if self.vectors == 1 and self.wide else 4
