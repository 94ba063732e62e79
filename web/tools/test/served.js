/*
 * What the tests of the tools serve, and with which command: EBB if it is set, else the stand-in.
 */
import { fileURLToPath } from 'node:url';

export const ebb = process.env.EBB ?? fileURLToPath(new URL('./stand-in-ebb.js', import.meta.url));
export const web = fileURLToPath(new URL('../..', import.meta.url));
export const tools = fileURLToPath(new URL('..', import.meta.url));
