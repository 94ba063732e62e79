/* openapi.json and the table of routes say the same, in both directions: paths, methods, parameters and bodies with
 * their limits, and who may ask. */
#include "tests/support/serve_world.h"

#include <strings.h>

#include "serve/serve.h"

/* "/a/:b" as OpenAPI has it: "/a/{b}". */
static void path_of(char out[160], const char *pattern) {
    size_t n = 0;
    for (const char *at = pattern; *at != 0;) {
        size_t length = strcspn(at + 1, "/") + 1;
        if (at[1] == ':') n += (size_t)snprintf(out + n, 160 - n, "/{%.*s}", (int)length - 2, at + 2);
        else n += (size_t)snprintf(out + n, 160 - n, "%.*s", (int)length, at);
        at += length;
    }
}

static json_int_t number_of(const json_t *schema, const char *name) {
    const json_t *j = json_object_get(schema, name);
    assert_true(json_is_integer(j));
    return json_integer_value(j);
}

static void assert_type(const json_t *schema, const char *type) {
    assert_string_equal(json_string_value(json_object_get(schema, "type")), type);
}

static void assert_schema_is(const json_t *schema, const ebb__rule *r) {
    assert_non_null(schema);
    switch (r->type) {
    case EBB__TEXT:
        assert_type(schema, "string");
        assert_int_equal(number_of(schema, "minLength"), r->least);
        assert_int_equal(number_of(schema, "maxLength"), r->most);
        break;
    case EBB__NUMBER:
        assert_type(schema, "integer");
        assert_int_equal(number_of(schema, "minimum"), r->least);
        assert_int_equal(number_of(schema, "maximum"), r->most);
        break;
    case EBB__FLAG: assert_type(schema, "boolean"); break;
    case EBB__JSON: assert_null(json_object_get(schema, "type")); break;
    case EBB__STATES:
        assert_type(schema, "string");
        assert_non_null(json_object_get(schema, "pattern"));
        break;
    }
}

static const json_t *parameter_of(const json_t *operation, const char *name, const char *in) {
    const json_t *one, *all = json_object_get(operation, "parameters");
    size_t i;
    json_array_foreach(all, i, one) {
        if (strcmp(json_string_value(json_object_get(one, "name")), name) == 0 &&
            strcmp(json_string_value(json_object_get(one, "in")), in) == 0)
            return one;
    }
    return NULL;
}

static bool is_in_list(const json_t *list, const char *name) {
    const json_t *one;
    size_t i;
    json_array_foreach(list, i, one) {
        if (strcmp(json_string_value(one), name) == 0) return true;
    }
    return false;
}

static size_t names_in(const char *pattern) {
    size_t n = 0;
    for (; *pattern != 0; pattern++) n += *pattern == ':';
    return n;
}

static void assert_query_is(const json_t *operation, const ebb__route *r) {
    for (size_t i = 0; i < r->rules_n; i++) {
        const json_t *p = parameter_of(operation, r->rules[i].name, "query");
        assert_non_null(p);
        assert_schema_is(json_object_get(p, "schema"), &r->rules[i]);
        assert_int_equal(json_is_true(json_object_get(p, "required")), r->rules[i].required);
    }
    assert_int_equal(json_array_size(json_object_get(operation, "parameters")),
                     r->rules_n + names_in(r->pattern));
    assert_null(json_object_get(operation, "requestBody"));
}

static void assert_body_is(const json_t *operation, const ebb__route *r) {
    const json_t *body = json_object_get(operation, "requestBody"),
                 *content = json_object_get(body, "content"),
                 *schema = json_object_get(json_object_get(content, "application/json"), "schema"),
                 *properties = json_object_get(schema, "properties"),
                 *required = json_object_get(schema, "required");
    size_t needed = 0;
    assert_non_null(properties);
    assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
    for (size_t i = 0; i < r->rules_n; i++) {
        assert_schema_is(json_object_get(properties, r->rules[i].name), &r->rules[i]);
        assert_int_equal(is_in_list(required, r->rules[i].name), r->rules[i].required);
        needed += r->rules[i].required;
    }
    assert_int_equal(json_object_size(properties), r->rules_n);
    assert_int_equal(json_array_size(required), needed);
    assert_int_equal(json_is_true(json_object_get(body, "required")), needed > 0);
    assert_int_equal(json_array_size(json_object_get(operation, "parameters")), names_in(r->pattern));
}

/* No `security` is that of the document: the token. [] is none, [{}, token] is either. */
static void assert_access_is(const json_t *operation, ebb__access access) {
    const json_t *security = json_object_get(operation, "security");
    if (access == EBB__CHANGE) assert_null(security);
    else assert_int_equal(json_array_size(security), access == EBB__OPEN ? 0 : 2);
    if (access == EBB__OPEN) assert_true(json_is_array(security));
}

static void assert_path_names(const json_t *operation, const char *pattern) {
    char name[64];
    for (const char *at = strchr(pattern, ':'); at != NULL; at = strchr(at + 1, ':')) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 1, "/"), at + 1);
        assert_non_null(parameter_of(operation, name, "path"));
    }
}

static void each_route_is_described(void **state) {
    serve_world *s = *state;
    size_t n;
    const ebb__route *routes = ebb__routes_of_dashboard(&n);
    assert_int_equal(look(s, "/openapi.json"), 200);
    const json_t *paths = json_object_get(s->said, "paths");
    for (size_t i = 0; i < n; i++) {
        char path[160], method[8];
        path_of(path, routes[i].pattern);
        snprintf(method, sizeof method, "%s", strcmp(routes[i].method, "GET") == 0 ? "get" : "post");
        const json_t *operation = json_object_get(json_object_get(paths, path), method);
        if (operation == NULL) fail_msg("%s %s is not described", method, path);
        assert_path_names(operation, routes[i].pattern);
        if (method[0] == 'g') assert_query_is(operation, &routes[i]);
        else assert_body_is(operation, &routes[i]);
        assert_access_is(operation, routes[i].access);
    }
}

static bool is_route(const char *method, const char *path) {
    size_t n;
    const ebb__route *routes = ebb__routes_of_dashboard(&n);
    for (size_t i = 0; i < n; i++) {
        char described[160];
        path_of(described, routes[i].pattern);
        if (strcasecmp(method, routes[i].method) == 0 && strcmp(path, described) == 0) return true;
    }
    return false;
}

static void each_description_is_of_a_route(void **state) {
    serve_world *s = *state;
    const char *path, *method;
    json_t *operations, *operation;
    size_t described = 0, n;
    (void)ebb__routes_of_dashboard(&n);
    assert_int_equal(look(s, "/openapi.json"), 200);
    json_object_foreach(json_object_get(s->said, "paths"), path, operations) {
        json_object_foreach(operations, method, operation) {
            if (!is_route(method, path)) fail_msg("%s %s is no route", method, path);
            described++;
        }
    }
    assert_int_equal(described, n);
}

/* Every $ref leads somewhere, and no two operations have one name. */
static void assert_refs(const json_t *j, const json_t *schemas) {
    const char *key, *ref = json_string_value(json_object_get(j, "$ref"));
    const char *const prefix = "#/components/schemas/";
    json_t *one;
    size_t i;
    if (ref != NULL) {
        assert_int_equal(strncmp(ref, prefix, strlen(prefix)), 0);
        if (json_object_get(schemas, ref + strlen(prefix)) == NULL) fail_msg("%s leads nowhere", ref);
    }
    if (json_is_object(j)) {
        json_object_foreach((json_t *)(uintptr_t)j, key, one) assert_refs(one, schemas);
    }
    json_array_foreach(j, i, one) assert_refs(one, schemas);
}

static void its_references_lead_somewhere(void **state) {
    serve_world *s = *state;
    assert_int_equal(look(s, "/openapi.json"), 200);
    assert_refs(s->said, member(s->said, "components.schemas"));
    assert_string_equal(said(s, "openapi"), "3.1.0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        SERVED(each_route_is_described),
        SERVED(each_description_is_of_a_route),
        SERVED(its_references_lead_somewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
