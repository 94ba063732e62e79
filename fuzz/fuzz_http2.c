/* fuzz/fuzz_http2.c - frames of any kind, after the preface, on a server of HTTP/2. */
#include "fuzz/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    enum { PREFACE = sizeof preface - 1, MOST = 65536 };
    static uint8_t bytes[PREFACE + MOST];
    if (n == 0 || n > MOST) return 0;
    memcpy(bytes, preface, PREFACE);
    memcpy(bytes + PREFACE, data + 1, n - 1);
    fuzz_connection(bytes, PREFACE + n - 1, data[0] == 0 ? SIZE_MAX : data[0] * 4u);
    return 0;
}
