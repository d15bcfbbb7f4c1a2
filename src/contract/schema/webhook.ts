import { Type } from 'typebox';
import { WEBHOOK_RETRIES } from '../deliveries.ts';
import { EVENT_TYPES } from '../events.ts';

/** Schemas of what a webhook is limited to, as a claim and an init take them. Contract sections 4 and 7. */

const GLOBS_MAX = 100;
const GLOB_MAX_LENGTH = 256;

/** The globs of `watch_ignore`; one that names nothing below `watch_dir`, such as `/`, is none. */
export const WatchIgnore = Type.Array(
  Type.String({ maxLength: GLOB_MAX_LENGTH, pattern: '^(?!(\\.?/)*$)[^\\u0000]+$' }),
  {
    maxItems: GLOBS_MAX,
    description: `a list of at most ${GLOBS_MAX} globs of 1 to ${GLOB_MAX_LENGTH} characters`,
  },
);

/** Which refused attempts are made again. */
export const RetryClass = Type.Enum(WEBHOOK_RETRIES, { title: 'WebhookRetry' });

/** The kinds of events that a webhook is sent. */
export const SentKinds = Type.Array(Type.Enum(EVENT_TYPES, { title: 'EventType' }), {
  minItems: 1,
  uniqueItems: true,
  description: `a list of at least one, none of them twice, of ${EVENT_TYPES.join(', ')}`,
});
