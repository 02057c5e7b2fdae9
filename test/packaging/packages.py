"""What the tests of packages share: programs run with a stranger's environment, what a file needs of the system, and a CMake project over the
installed library."""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "abi"))
import shared_object

CLIENT = pathlib.Path(__file__).resolve().parent / "client.c"
_CMAKE = """cmake_minimum_required(VERSION 3.25)
project(client C)
find_package(FlydslAot 0.1 REQUIRED)
add_executable(client client.c)
target_link_libraries(client PRIVATE flydsl_aot::flydsl_aot m)
"""


def environment(**more):
    """What a stranger's shell has: nothing of this project."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FLYDSL", "LD_LIBRARY", "PYTHON", "SOURCE_DATE"))}
    return {**kept, **{name: str(value) for name, value in more.items()}}


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return done.stdout


# What packages may need: a glibc that enterprise distributions of 2019 have.
NEWEST_GLIBC = (2, 28)
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2", "libflydsl_aot.so.0"}


def needs(path):
    """Libraries that an ELF file is linked with, and its functions of younger versions of glibc than NEWEST_GLIBC."""
    versions = {name: version.removeprefix("GLIBC_").split(".") for name, version in shared_object.imported(path).items()
                if version.startswith("GLIBC_")}
    return set(shared_object.dynamic(path, "NEEDED")), {name for name, version in versions.items()
                                                        if tuple(map(int, version[:2])) > NEWEST_GLIBC}


def client_by_cmake(project, prefix):
    """client.c, built in the folder `project` by find_package."""
    project.mkdir()
    shutil.copy(CLIENT, project)
    (project / "CMakeLists.txt").write_text(_CMAKE)
    run("cmake", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}", env=environment())
    run("cmake", "--build", project / "build", env=environment())
    return project / "build/client"


def client_by_dlopen(program, prefix):
    """client.c as the file `program`, linked with nothing; its argument is the library."""
    run("cc", "-std=gnu11", "-DBY_DLOPEN", "-I", f"{prefix}/include", CLIENT, "-o", program, "-lm", "-ldl")
    return program
