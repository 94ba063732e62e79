/* A PostgreSQL server for a script: prints its URL, and ends with standard input. */
#include "tests/durable/postgres_server.h"

int main(void) {
    pg_server s;
    char byte;
    if (!pg_server_begin(&s, false)) return 1;
    puts(s.url);
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0) {}
    pg_server_end(&s);
    return 0;
}
