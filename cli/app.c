/* cli/app.c - stores, and shared libraries with orchestrations, activities and routes. They find the functions of libebb in the
 * command. */
#include "cli/app.h"

#include <dlfcn.h>
#include <ebb/ebb.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "durable/provider.h"
#include "durable/store.h"
#include "serve/line.h"

static const char symbol[] = "ebb_app", symbol_http[] = "ebb_app_http";

/* Texts of the system and of a store may have names in them that control a terminal. */
static void print_plain(const char *what, const char *text) {
    char line[1200];
    (void)snprintf(line, sizeof line, "%s: %s", what, text);
    ebb__make_plain(line);
    ebb__cli_error("%s", line);
}

/* Without a slash the system would look in its own directories. */
static void *load(const char *path) {
    char here[4096]; /* a name that has no room here is longer than any file's */
    (void)snprintf(here, sizeof here, "./%s", path);
    return dlopen(strchr(path, '/') == NULL ? here : path, RTLD_NOW | RTLD_LOCAL);
}

ebb_app_fn ebb__app_load(const char *path) {
    ebb_app_fn app = NULL;
    void *library = load(path), *at = library != NULL ? dlsym(library, symbol) : NULL;
    if (library == NULL) {
        const char *why = dlerror();
        print_plain("can't load", why != NULL ? why : path);
    } else if (at == NULL) {
        ebb__cli_error("%s does not export ebb_app, which registers what it has (ebb/durable.h)", path);
    } else {
        memcpy(&app, &at, sizeof app); /* ISO C converts no object pointer to a function pointer */
    }
    return app;
}

ebb_status ebb__app_register(ebb_cx *cx, ebb_worker *w, const char *path, ebb_app_fn app) {
    (void)ebb__durable_say(EBB_OK, "%s", ""); /* the library may fail with a status of its own, and no text */
    const ebb_status st = app(cx, w);
    if (st != EBB_OK) ebb__durable_print_error(path, st);
    return st;
}

ebb_app_http_fn ebb__app_load_http(const char *path) {
    ebb_app_http_fn fn = NULL;
    void *library = load(path), *at = library != NULL ? dlsym(library, symbol_http) : NULL;
    if (at != NULL) memcpy(&fn, &at, sizeof fn);
    return fn;
}

ebb_status ebb__app_serve(ebb_cx *cx, const char *path, ebb_app_http_fn fn, ebb_address *address,
                          ebb_store *store) {
    ebb_http_server *server;
    ebb_status st = ebb_http_listen(cx, &(ebb_http_server_opts){.address = *address}, &server);
    if (st == EBB_OK) st = ebb_http_server_address(cx, server, address);
    if (st != EBB_OK) {
        ebb__cli_error("the application can't listen on %s port %u: %s", address->ip, address->port,
                       ebb_status_text(st));
        return st;
    }
    (void)ebb__durable_say(EBB_OK, "%s", "");
    st = fn(cx, server, store);
    if (st != EBB_OK) ebb__durable_print_error(path, st);
    return st;
}

bool ebb__app_is_command(const char *text) {
    const char *equals = strchr(text, '=');
    return equals != NULL && equals != text && equals[1] != 0 && equals - text <= EBB_DURABLE_ID;
}

ebb_status ebb__app_command(ebb_worker *w, const char *text) {
    char name[EBB_DURABLE_ID + 1];
    const char *command = strchr(text, '=') + 1;
    (void)snprintf(name, sizeof name, "%.*s", (int)(command - 1 - text), text);
    const char *args[] = {"sh", "-c", command, NULL};
    ebb_status st = ebb_worker_command(w, name, &(ebb_process_opts){.file = "/bin/sh", .args = args}, NULL);
    if (st != EBB_OK) ebb__durable_print_error(text, st);
    return st;
}

void ebb__durable_print_error(const char *what, ebb_status st) {
    const char *text = ebb_durable_error();
    print_plain(what, *text != 0 ? text : ebb_status_text(st));
}

/* ---- stores ------------------------------------------------------------------------------------------ */

static const uint64_t patience_ns = 2 * EBB_SECOND, pause_ns = 50 * EBB_MS;

static void print_refused(const ebb_store_opts *opts, ebb_status st) {
    char shown[300];
    ebb__store_url_say(opts->url, shown, sizeof shown);
    ebb__durable_print_error(shown, st);
    if (st == EBB_ERR_BUSY && opts->client)
        ebb__cli_error(
            "that process can't be asked over the socket beside the file: ask as its user, or stop it");
    else if (st == EBB_ERR_BUSY)
        ebb__cli_error("stop that process first; `ebb durable` can ask it while it runs");
}

ebb_status ebb__durable_open(ebb_cx *cx, const ebb_store_opts *opts, ebb_store **out) {
    const uint64_t until = ebb_now(cx) + patience_ns;
    ebb_value v;
    ebb_status st;
    while ((st = ebb_await(cx, ebb_store_open(cx, opts), &v)) == EBB_ERR_BUSY && ebb_now(cx) < until) {
        ebb_sleeper nap = {0};
        if (ebb_sleep(cx, &nap, pause_ns) != EBB_OK) return EBB_CANCELLED;
    }
    if (st == EBB_OK) *out = ebb_store_of(&v);
    else if (st != EBB_CANCELLED) print_refused(opts, st);
    return st == EBB_OK && ebb_stopping(cx) ? EBB_CANCELLED : st; /* nothing is to begin with it any more */
}
