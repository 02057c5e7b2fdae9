"""Lets PyTorch's x86-64 wheel from the package index, a CUDA build, run on the CPU without its CUDA half.

usage: cuda_stand_in.py TORCH/lib

Two thirds of the wheel and two gigabytes of further packages are CUDA libraries, which no operator on CPU tensors calls. In their place this
makes one small library that has their names and every symbol of theirs that the rest of PyTorch refers to: C functions report that there is
no device (100, cudaErrorNoDevice), C++ functions stop the process, data is zero, type descriptions are real. Three things that
PyTorch touches while it is imported are more than that: see _BODIES."""
import ctypes
import pathlib
import subprocess
import sys

NAME = "libcuda_stand_in.so"
ABSENT = ("libtorch_cuda.so", "libcudart.so.13", "libcupti.so.13", "libcudnn.so.9", "libcufile.so.0")
SYSTEM = (None, "libstdc++.so.6", "libgcc_s.so.1", "libm.so.6")
C_PREFIXES = ("cu", "nvrtc")

NO_DEVICE = ["mov $100, %eax", "ret"]
# Part of a C++ name -> what it does.
_BODIES = {
    "get_gil_checker": ["lea zeros(%rip), %rax", "ret"],  # returns a reference, which is assigned to
    "ProcessGroupNCCL7OptionsC": ["lea any_object+16(%rip), %rax", "mov %rax, (%rdi)", "ret"],  # a default argument, built and destroyed
}


def symbols(path, kind):
    """Dynamic symbols of a library as nm writes them, name@version; weak ones, which may stay undefined, left out."""
    lines = subprocess.run(["nm", "-D", kind, str(path)], check=True, capture_output=True, text=True).stdout.splitlines()
    return {fields[-1] for fields in map(str.split, lines) if fields[-2] not in "wv"}


def wanted(folder):
    """Name -> version of what PyTorch's libraries need and neither they nor the system have."""
    libraries = [path for path in folder.glob("*.so*") if path.is_file() and not path.is_symlink() and path.name != NAME]
    own = {symbol.split("@")[0] for path in libraries for symbol in symbols(path, "--defined-only")}
    system = [ctypes.CDLL(name) for name in SYSTEM]
    found = {}
    for symbol in set().union(*(symbols(path, "--undefined-only") for path in libraries)):
        name, _, version = symbol.partition("@")
        if name in own or name.startswith(("Py", "_Py", "__")) or not name.startswith(("_Z", *C_PREFIXES)):
            continue
        if (not version or version.startswith("libcu")) and not any(hasattr(library, name) for library in system):
            found[name] = version
    return found


def type_description(label, mangled):
    return [f"{label}: .quad _ZTVN10__cxxabiv117__class_type_infoE+16, {label}_name", f'{label}_name: .string "{mangled}"', ".balign 16"]


def assembly(names):
    """x86-64 code and data of the symbols (Itanium C++ ABI for the names of data)."""
    text, data = [".text", "nothing: ret"], [".data", ".balign 16"]
    for name in names:
        if name.startswith("_ZTI"):
            data += [f".globl {name}", f".type {name}, @object", f".size {name}, 16", *type_description(name, name[4:])]
        elif name.startswith(("_ZTV", "_ZTS")):
            data += [f".globl {name}", f".type {name}, @object", f".size {name}, 1024", f"{name}: .zero 1024"]
        else:
            special = next((body for part, body in _BODIES.items() if part in name), ["ud2"])
            text += [f".globl {name}", f".type {name}, @function", f"{name}:", *(NO_DEVICE if name.startswith(C_PREFIXES) else special)]
    data += ["zeros: .zero 4096", *type_description("any_type", "N10cuda_stand_inE"),
             "any_object: .quad 0, any_type", ".rept 64", ".quad nothing", ".endr", '.section .note.GNU-stack,"",@progbits']
    return "\n".join(text + data) + "\n"


def main():
    folder = pathlib.Path(sys.argv[1])
    names = wanted(folder)
    versions = {version: [n for n in names if names[n] == version] for version in sorted(set(names.values()) - {""})}
    source, script = folder / "cuda_stand_in.s", folder / "cuda_stand_in.map"
    source.write_text(assembly(sorted(names)))
    script.write_text("".join(f"{version} {{ global: {' '.join(f'{n};' for n in sorted(members))} }};\n" for version, members in versions.items()))
    subprocess.run(["g++", "-shared", f"-Wl,-soname,{NAME}", f"-Wl,--version-script={script}", "-Wl,--no-as-needed", "-o",
                    str(folder / NAME), str(source)], check=True)
    for absent in ABSENT:
        (folder / absent).unlink(missing_ok=True)
        (folder / absent).symlink_to(NAME)
    print(f"{NAME}: {len(names)} symbols stand in for {', '.join(ABSENT)}")


if __name__ == "__main__":
    main()
