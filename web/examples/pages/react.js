/* React 18 has no ES modules: the page loads its scripts, and this gives them the names that programs import. */
export const { StrictMode, createElement, useEffect, useState } = globalThis.React;
export const { createRoot, flushSync } = globalThis.ReactDOM;
