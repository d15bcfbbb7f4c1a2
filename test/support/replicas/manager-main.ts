import './shifted-clock.ts';

export { main } from '../../../bin/sandbox-manager-options.ts';
