/* Certificates for tests, made when they start: a directory of PEM files that goes with them.
 *
 *   ca.pem, other-ca.pem   two that certify others
 *   leaf                   for localhost, *.example.org, 127.0.0.1 and ::1, by the first: .pem and .key
 *   expired, early         for localhost, by the first, at another time
 *   foreign                for localhost, by the other
 *   localhost              by the first; the name stands in its subject only
 *   someone                a client's, by the first
 *   secret                 its key has a password
 *   garbage.pem, empty.pem */
#ifndef EBB_TESTS_TLS_CERTIFICATES_H
#define EBB_TESTS_TLS_CERTIFICATES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

enum { DAY_S = 24 * 3600, PATH_BYTES = 256 };

static char dir[] = "/tmp/ebb-tls-XXXXXX";
static char made[32][PATH_BYTES];
static size_t made_n;

/* The path of a file in the directory of this run, which goes at its end. */
static const char *file(const char *name) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    for (size_t i = 0; i < made_n; i++) {
        if (strcmp(made[i], path) == 0) return made[i];
    }
    assert_true(made_n < sizeof made / sizeof *made);
    return strcpy(made[made_n++], path);
}

static inline void write_text(const char *name, const char *text) {
    FILE *f = fopen(file(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

typedef struct identity {
    EVP_PKEY *key;
    X509 *cert;
} identity;

static inline void add_extension(X509 *cert, int nid, const char *value) {
    X509V3_CTX cx;
    X509V3_set_ctx_nodb(&cx);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &cx, nid, value);
    assert_non_null(e);
    assert_int_equal(X509_add_ext(cert, e, -1), 1);
    X509_EXTENSION_free(e);
}

static inline void set_name(X509_NAME *name, const char *text) {
    assert_int_equal(
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)text, -1, -1, 0), 1);
}

/* Valid for a day from `from_s` seconds from now on. `names` NULL: it is a CA. By itself if `by` is NULL. */
static inline identity identity_new(const char *subject, const char *names, long from_s, const identity *by) {
    static long serial;
    identity i = {EVP_EC_gen("P-256"), X509_new()};
    assert_true(i.key != NULL && i.cert != NULL);
    X509_set_version(i.cert, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(i.cert), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(i.cert), from_s);
    X509_gmtime_adj(X509_getm_notAfter(i.cert), from_s + DAY_S);
    set_name(X509_get_subject_name(i.cert), subject);
    X509_set_issuer_name(i.cert, X509_get_subject_name(by != NULL ? by->cert : i.cert));
    X509_set_pubkey(i.cert, i.key);
    if (names == NULL) add_extension(i.cert, NID_basic_constraints, "critical,CA:TRUE");
    else if (names[0] != 0) add_extension(i.cert, NID_subject_alt_name, names);
    assert_true(X509_sign(i.cert, by != NULL ? by->key : i.key, EVP_sha256()) > 0);
    return i;
}

static inline void identity_free(identity i) {
    EVP_PKEY_free(i.key);
    X509_free(i.cert);
}

static inline void save(const identity *i, const char *cert_name, const char *key_name,
                        const char *password) {
    FILE *f = fopen(file(cert_name), "w");
    assert_non_null(f);
    assert_int_equal(PEM_write_X509(f, i->cert), 1);
    fclose(f);
    if (key_name == NULL) return;
    f = fopen(file(key_name), "w");
    assert_non_null(f);
    const EVP_CIPHER *cipher = password != NULL ? EVP_aes_128_cbc() : NULL;
    char secret[32];
    snprintf(secret, sizeof secret, "%s", password != NULL ? password : "");
    assert_int_equal(PEM_write_PKCS8PrivateKey(f, i->key, cipher, secret, (int)strlen(secret), NULL, NULL),
                     1);
    fclose(f);
}

static inline void save_leaf(const char *name, const char *names, long from_s, const identity *by) {
    char cert[64], key[64];
    identity leaf = identity_new(name, names, from_s, by);
    snprintf(cert, sizeof cert, "%s.pem", name);
    snprintf(key, sizeof key, "%s.key", name);
    save(&leaf, cert, key, NULL);
    identity_free(leaf);
}

static inline int make_certificates(void **state) {
    (void)state;
    assert_non_null(mkdtemp(dir));
    identity ca = identity_new("a CA", NULL, -60, NULL), other = identity_new("another CA", NULL, -60, NULL);
    save(&ca, "ca.pem", NULL, NULL);
    save(&other, "other-ca.pem", NULL, NULL);
    save_leaf("leaf", "DNS:localhost,DNS:*.example.org,IP:127.0.0.1,IP:::1", -60, &ca);
    save_leaf("expired", "DNS:localhost", -2 * DAY_S, &ca);
    save_leaf("early", "DNS:localhost", 60 * 60, &ca);
    save_leaf("foreign", "DNS:localhost", -60, &other);
    save_leaf("localhost", "", -60, &ca); /* its name is the subject's only */
    save_leaf("someone", "email:someone@example.org", -60, &ca);
    save(&ca, "secret.pem", "secret.key", "open sesame");
    write_text("garbage.pem",
               "-----BEGIN CERTIFICATE-----\nnothing of the kind\n-----END CERTIFICATE-----\n");
    write_text("empty.pem", "");
    identity_free(ca);
    identity_free(other);
    return 0;
}

static inline int remove_certificates(void **state) {
    (void)state;
    for (size_t i = 0; i < made_n; i++) unlink(made[i]);
    return rmdir(dir);
}

#endif
