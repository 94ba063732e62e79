/* The page of the shop: files that CMake has put into page.inc. The style is the dashboard's. */
#include <string.h>

#include "shop.h"

typedef struct file {
    const char *name, *type;
    const unsigned char *at;
    size_t n;
} file;

#include "page.inc"

static const char policy[] = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                             "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

ebb_status shop_page(ebb_cx *cx, ebb_http *x, void *arg) {
    const char *name = ebb_http_param(x, "file");
    size_t i = 0;
    (void)arg;
    if (name == NULL) name = "page.html";
    while (i < sizeof files / sizeof *files && strcmp(files[i].name, name) != 0) i++;
    if (i == sizeof files / sizeof *files) return ebb_http_text(cx, x, 404, "there is no such page\n");
    ebb_status st = ebb_http_set_header(x, "content-security-policy", policy);
    return st == EBB_OK ? ebb_http_reply(cx, x, 200, files[i].type, files[i].at, files[i].n) : st;
}
