import { Type } from 'typebox';
import { EVENT_TYPES } from './events.ts';
import { GLOB_MAX_LENGTH, GLOB_PATTERN, GLOBS_MAX } from './limits.ts';
import { WEBHOOK_RETRIES } from './words.ts';

/** What a webhook is limited to, as a claim and an init take it. Contract sections 4 and 7. */

/** The globs of `watch_ignore`. */
export const WatchIgnore = Type.Array(Type.String({ maxLength: GLOB_MAX_LENGTH, pattern: GLOB_PATTERN }), {
  maxItems: GLOBS_MAX,
  description: `a list of at most ${GLOBS_MAX} globs of 1 to ${GLOB_MAX_LENGTH} characters`,
});

/** Which refused attempts are made again. */
export const RetryClass = Type.Enum(WEBHOOK_RETRIES, { title: 'WebhookRetry' });

/** The kinds of events that a webhook is sent. */
export const SentKinds = Type.Array(Type.Enum(EVENT_TYPES, { title: 'EventType' }), {
  minItems: 1,
  uniqueItems: true,
  description: `a list of at least one, none of them twice, of ${EVENT_TYPES.join(', ')}`,
});
