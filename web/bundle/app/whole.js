/* The package as most import it: its module is text in the bundle, and nothing is fetched. */
import { hostOf, Runtime } from 'ebb-web';
import { show } from './show.js';

show(new Runtime(hostOf(globalThis)));
