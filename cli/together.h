/* cli/together.h - the traces of several runtimes that sent each other messages, as the loops of a service do. */
#ifndef EBB_CLI_TOGETHER_H
#define EBB_CLI_TOGETHER_H

#include "cli/cli.h"

/* Checks what holds between the files: each runtime has one; a message was sent before it came, so that no event comes
 * before its own cause; a close, a cancel or a force that came was one at the sender before. False: an error was
 * printed. The files were verified one by one before. */
bool ebb__verify_together(const ebb__cli_file *files, size_t n);

#endif
