/* The page, its files, and the description of the API: all from memory. */
#include <string.h>

#include "serve/assets.h"
#include "serve/serve.h"

/* The page asks nobody but its own server for anything, and no other page may have it in a frame. */
static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

static ebb_status send_asset(ebb__ask *a, const char *name) {
    const ebb__asset *asset = ebb__asset_of(name);
    if (asset == NULL) return ebb__answer_refusal(a, 404, "no_such_file", "there is no '%.60s'", name);
    ebb_status st = ebb_http_set_header(a->x, "content-security-policy", policy);
    return st == EBB_OK ? ebb_http_reply(a->cx, a->x, 200, asset->type, asset->at, asset->n) : st;
}

ebb_status ebb__serve_page(ebb__ask *a) {
    return send_asset(a, "index.html");
}

ebb_status ebb__serve_asset(ebb__ask *a) {
    const char *name = ebb_http_param(a->x, "file");
    return name != NULL ? send_asset(a, name) : EBB_ERR_NOMEM;
}

ebb_status ebb__serve_openapi(ebb__ask *a) {
    return send_asset(a, "openapi.json");
}
