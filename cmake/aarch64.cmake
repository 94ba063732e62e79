# AArch64 with Debian's cross compiler and qemu-user; scripts/aarch64-root makes the root with the libraries.
set(EBB_AARCH64_ROOT ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-root CACHE PATH "Debian's arm64 packages, unpacked")
get_filename_component(root ${EBB_AARCH64_ROOT} ABSOLUTE)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES EBB_AARCH64_ROOT)

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_C_FLAGS_INIT "-isystem ${root}/usr/include -isystem ${root}/usr/include/aarch64-linux-gnu")
# The libraries that libpq needs are found here; the linker looks in /usr/lib only.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${root}/lib/aarch64-linux-gnu")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${root})

set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root})
set(ENV{PKG_CONFIG_LIBDIR} ${root}/usr/lib/aarch64-linux-gnu/pkgconfig)
