/* Which provider a URL is for. */
#include <string.h>

#include "durable/provider.h"

static const struct {
    const char *scheme;
    const ebb_provider *provider;
} providers[] = {
    {"lab", &ebb__provider_lab},
    {"sqlite", &ebb__provider_sqlite},
};

const ebb_provider *ebb__provider_of(const char *url) {
    const size_t n = strcspn(url, ":");
    if (url[n] != ':') return NULL;
    for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++) {
        if (strlen(providers[i].scheme) == n && memcmp(providers[i].scheme, url, n) == 0)
            return providers[i].provider;
    }
    return NULL;
}
