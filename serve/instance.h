/* What the reads and the changes of instances share. */
#ifndef EBB__SERVE_INSTANCE_H
#define EBB__SERVE_INSTANCE_H

#include "serve/serve.h"

/* The id in the path. False: answered already, with *st: there is no store. */
bool ebb__instance_take(ebb__ask *a, const char **id, ebb_status *st);
/* Answers with the failure that an await has just returned. */
ebb_status ebb__instance_failure(ebb__ask *a, ebb_status st);
/* Waits for what the store is asked, for a while. */
ebb_status ebb__instance_await(ebb__ask *a, ebb_future *f, ebb_value *v);
/* Takes from the request what a filter has. */
void ebb__instance_filter(const ebb__ask *a, ebb_instance_filter *f);
/* Asks for the page that the request wants, for a while. */
ebb_future *ebb__instance_page(ebb__ask *a);
/* The page in *v, which it discards. NULL: no memory. */
struct json_t *ebb__instance_page_json(ebb__ask *a, ebb_value *v);
/* Answers with the info in *v, and discards it; or with the failure. */
ebb_status ebb__instance_answer(ebb__ask *a, int status, ebb_status st, ebb_value *v);

#endif
