# `make install` has a build of its own, whose result does not depend on this one: once is enough.
if(CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo" AND CMAKE_C_COMPILER_ID STREQUAL "GNU" AND NOT CMAKE_C_FLAGS MATCHES sanitize)
    ebb_python(install.prefix install/test_install.py ${PROJECT_SOURCE_DIR})
endif()
# The packages agree with the tree. `make deb` builds and tries them.
if(NOT EBB_SANITIZED)
    ebb_python(install.debian install/test_debian.py ${PROJECT_SOURCE_DIR})
endif()
