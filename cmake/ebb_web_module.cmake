# Writes a wasm module as a JavaScript module, which needs no fetch and no file: cmake -DWASM=F -DOUT=F -P this.
execute_process(COMMAND base64 -w 0 ${WASM} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
file(WRITE ${OUT} "const WASM = '${text}';
let compiled;

/** The module that this package was made with, compiled when it is first asked for. */
export function builtin() {
    compiled ??= new WebAssembly.Module(Uint8Array.from(atob(WASM), (c) => c.charCodeAt(0)));
    return compiled;
}
")
