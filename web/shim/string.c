/* Seven string functions for a module that has no libc. A wasm engine runs these loops well
 * enough; -ffreestanding keeps the compiler from turning them into calls to themselves. */
#include <stdint.h>
#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n) {
    unsigned char *t = to;
    const unsigned char *f = from;
    for (size_t i = 0; i < n; i++) t[i] = f[i];
    return to;
}

void *memmove(void *to, const void *from, size_t n) {
    unsigned char *t = to;
    const unsigned char *f = from;
    if ((uintptr_t)t < (uintptr_t)f) {
        for (size_t i = 0; i < n; i++) t[i] = f[i];
    } else {
        for (size_t i = n; i > 0; i--) t[i - 1] = f[i - 1];
    }
    return to;
}

void *memset(void *to, int byte, size_t n) {
    unsigned char *t = to;
    for (size_t i = 0; i < n; i++) t[i] = (unsigned char)byte;
    return to;
}

int memcmp(const void *a, const void *b, size_t n) {
    const unsigned char *x = a;
    const unsigned char *y = b;
    for (size_t i = 0; i < n; i++) {
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    }
    return 0;
}

size_t strlen(const char *s) {
    size_t n = 0;
    while (s[n] != '\0') n++;
    return n;
}

int strcmp(const char *a, const char *b) {
    return strncmp(a, b, SIZE_MAX);
}

int strncmp(const char *a, const char *b, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char x = (unsigned char)a[i];
        unsigned char y = (unsigned char)b[i];
        if (x != y) return x < y ? -1 : 1;
        if (x == '\0') return 0;
    }
    return 0;
}
