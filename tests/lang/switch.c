/* The same programs on the interpreter with a switch: this file has a VM of its own, and the library's is not linked. */
#include "tests/lang/programs.c"

#define EBB__VM_SWITCH 1
#include "lang/vm.c"
