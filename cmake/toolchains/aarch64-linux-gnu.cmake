# Cross-build for the Jetson's processor, without LLVM:
#   rustup target add aarch64-unknown-linux-gnu; apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross
#   cmake -S cmake -B build-arm -G Ninja -DSASS_MLIR=OFF -DCMAKE_TOOLCHAIN_FILE=cmake/toolchains/aarch64-linux-gnu.cmake
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(SASS_CARGO_TARGET aarch64-unknown-linux-gnu CACHE STRING "")
set(SASS_LINKER aarch64-linux-gnu-gcc CACHE STRING "")
