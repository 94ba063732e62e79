/* A library that `ebb worker` can load, and that registers nothing. */
int not_an_app(void);
int not_an_app(void) {
    return 0;
}
