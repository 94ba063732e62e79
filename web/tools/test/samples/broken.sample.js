import { nothing } from './no-such-file.js';

nothing();
