# Cross-compiles the core for Linux on $KOFN_ARCH, x86_64 or aarch64: zig is clang with the symbols of glibc 2.17 (2012)
# and a C++ library that is linked in, so that a wheel asks for no newer one than PyTorch itself does.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR $ENV{KOFN_ARCH})
set(CMAKE_CXX_COMPILER $ENV{KOFN_PYTHON} -m ziglang c++ -target $ENV{KOFN_ARCH}-linux-gnu.2.17)
set(CMAKE_MODULE_LINKER_FLAGS_INIT -s)
