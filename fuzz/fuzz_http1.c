/* fuzz/fuzz_http1.c - bytes of any kind on a server of HTTP/1. */
#include "fuzz/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    enum { MOST = 65536 };
    if (n == 0 || n > MOST) return 0;
    fuzz_connection(data + 1, n - 1, data[0] == 0 ? SIZE_MAX : data[0] * 4u);
    return 0;
}
