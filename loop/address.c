/* Addresses: conversion between libuv's and ebb's. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <sys/un.h>

#include "loop/stream.h"

ebb_status ebb__address_parse(const ebb_address *a, struct sockaddr_storage *out) {
    memset(out, 0, sizeof *out);
    if (a == NULL || memchr(a->ip, 0, sizeof a->ip) == NULL) return EBB_ERR_INVALID;
    if (uv_ip4_addr(a->ip, a->port, (struct sockaddr_in *)(void *)out) == 0) return EBB_OK;
    if (uv_ip6_addr(a->ip, a->port, (struct sockaddr_in6 *)(void *)out) == 0) return EBB_OK;
    return EBB_ERR_INVALID;
}

ebb_status ebb__address_format(const struct sockaddr *from, ebb_address *out) {
    int code = UV_EINVAL;
    *out = (ebb_address){.port = 0};
    if (from->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)from;
        code = uv_ip4_name(in, out->ip, sizeof out->ip);
        out->port = ntohs(in->sin_port);
    } else if (from->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const struct sockaddr_in6 *)(const void *)from;
        code = uv_ip6_name(in, out->ip, sizeof out->ip);
        out->port = ntohs(in->sin6_port);
    }
    return code == 0 ? EBB_OK : EBB_ERR_INVALID;
}

ebb_status ebb__path_check(const char *path) {
    if (path == NULL || path[0] == 0) return EBB_ERR_INVALID;
    return strlen(path) < sizeof(((struct sockaddr_un *)NULL)->sun_path) ? EBB_OK : EBB_ERRNO(ENAMETOOLONG);
}
