/* A name with several addresses. What such a name stands for is a machine's own affair, so the system's lookup is
 * replaced here: libuv finds this one first. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include "tests/http_client_world.h"

static struct sockaddr_in addresses[3];
static struct addrinfo found[3];
static int freed;

/* Two at which nobody listens, and then the server's. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **out) {
    static const char *const at[] = {"127.0.0.2", "127.0.0.3", "127.0.0.1"};
    (void)service;
    (void)hints;
    if (strcmp(name, "several.test") != 0) return EAI_NONAME;
    for (int i = 0; i < 3; i++) {
        addresses[i] = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(at[i])};
        found[i] = (struct addrinfo){.ai_family = AF_INET,
                                     .ai_socktype = SOCK_STREAM,
                                     .ai_addrlen = sizeof addresses[i],
                                     .ai_addr = (struct sockaddr *)&addresses[i],
                                     .ai_next = i < 2 ? &found[i + 1] : NULL};
    }
    *out = found;
    return 0;
}

void freeaddrinfo(struct addrinfo *list) {
    assert_ptr_equal(list, found);
    freed++;
}

static ebb_status get_named(http_world *h, const char *name, uint16_t port) {
    char text[64];
    snprintf(text, sizeof text, "http://%s:%u/hello", name, port);
    return loop_await(h->w, ebb_http_get(http_cx(h), h->client, text), NULL);
}

static void addresses_are_tried_one_after_the_other(void **state) {
    http_world *h = *state;
    assert_int_equal(get_named(h, "several.test", h->port), EBB_OK);
    assert_int_equal(server_stats(h).accepted, 1);
}

static void the_last_says_why_none_would_do(void **state) {
    http_world *h = *state;
    freed = 0;
    assert_int_equal(get_named(h, "several.test", 1), EBB_ERRNO(ECONNREFUSED));
    assert_int_equal(freed, 1);
    assert_int_equal(get_named(h, "none.test", 1), EBB_UV(UV_EAI_NONAME));
    assert_int_equal(freed, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        OVER(addresses_are_tried_one_after_the_other),
        OVER(the_last_says_why_none_would_do),
    };
    return cmocka_run_group_tests_name("http_client_names", tests, NULL, NULL);
}
