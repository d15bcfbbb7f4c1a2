import { LOG_LEVELS } from '../base/log.ts';
import {
  choiceOption,
  FILLED_OPTION,
  integerOption,
  type OptionRow,
  SWITCH_OPTION,
  TEXT_OPTION,
} from '../base/options.ts';
import {
  ATTEMPT_TIMEOUT_MS,
  DEFAULT_HOST,
  DEFAULT_PORT,
  DEFAULT_STATE_DIR,
  DELIVERY_CONCURRENCY,
  DELIVERY_WINDOW_MS,
  OUTBOX_MAX_BYTES,
  OUTBOX_MAX_RECORDS,
  SHUTDOWN_GRACE_MS,
} from '../contract/defaults.ts';
import { WEBHOOK_RETRIES } from '../contract/deliveries.ts';
import { RESTART_POLICIES } from '../contract/processes.ts';

const DAY_MS = 24 * 60 * 60 * 1000;

/** All options of the daemon. Source: contract section 4, the options. */
export const SANDBOXD_OPTIONS = [
  {
    name: 'webhook_url',
    value: 'url',
    description: 'where events are delivered (http or https)',
    type: TEXT_OPTION,
  },
  {
    name: 'webhook_secret_file',
    value: 'path',
    description: 'file with the secret that signs deliveries',
    type: TEXT_OPTION,
  },
  {
    name: 'webhook_secret',
    value: 'secret',
    description: 'the secret itself; prefer the file (SANDBOXD_WEBHOOK_SECRET)',
    type: TEXT_OPTION,
    has_no_variable: true,
  },
  {
    name: 'webhook_retry',
    value: 'class',
    description: 'statuses that are tried again: transient (408, 425, 429, 5xx), or any but 2xx and 410',
    type: choiceOption(WEBHOOK_RETRIES),
    standard: 'transient',
  },
  {
    name: 'watch_dir',
    value: 'dir',
    description: 'directory whose changes are reported; may be created later',
    type: TEXT_OPTION,
  },
  {
    name: 'watch_ignore',
    value: 'glob',
    description: 'ignore matching paths; repeatable',
    type: TEXT_OPTION,
    is_list: true,
    separator: '\n',
  },
  {
    name: 'sandbox_id',
    value: 'id',
    description: 'id of the sandbox, sent with every event',
    type: TEXT_OPTION,
  },
  {
    name: 'team_id',
    value: 'id',
    description: 'id of its team, sent with every event',
    type: TEXT_OPTION,
  },
  {
    name: 'host',
    value: 'host',
    description: 'address to listen on; localhost is 127.0.0.1 and [::1]',
    type: FILLED_OPTION,
    standard: DEFAULT_HOST,
  },
  {
    name: 'port',
    value: 'port',
    description: 'port to listen on; 0 picks a free one',
    type: integerOption(0, 65_535),
    standard: `${DEFAULT_PORT}`,
  },
  {
    name: 'control_token_file',
    value: 'path',
    description: 'file with the control token; created if missing (default: <state-dir>/control-token)',
    type: TEXT_OPTION,
  },
  {
    name: 'control_socket',
    value: 'path',
    description: 'also serve on this Unix socket, without a token',
    type: TEXT_OPTION,
  },
  {
    name: 'state_dir',
    value: 'dir',
    description: 'directory for the outbox and process output; must be on persistent storage',
    type: FILLED_OPTION,
    standard: DEFAULT_STATE_DIR,
  },
  {
    name: 'restart',
    value: 'policy',
    description: 'restart policy of the main command',
    type: choiceOption(RESTART_POLICIES),
    standard: 'never',
  },
  {
    name: 'keep_alive',
    value: null,
    description: 'keep running after the main command has ended',
    type: SWITCH_OPTION,
    standard: 'false',
  },
  {
    name: 'process_user',
    value: 'name',
    description: "user that processes run as (default: the daemon's own)",
    type: TEXT_OPTION,
  },
  {
    name: 'attempt_timeout_ms',
    value: 'ms',
    description: 'timeout of one delivery attempt',
    type: integerOption(1, 10 * 60_000),
    standard: `${ATTEMPT_TIMEOUT_MS}`,
  },
  {
    name: 'delivery_window_ms',
    value: 'ms',
    description: 'how long a record is retried',
    type: integerOption(1, 365 * DAY_MS),
    standard: `${DELIVERY_WINDOW_MS}`,
  },
  {
    name: 'delivery_concurrency',
    value: 'n',
    description: 'maximum concurrent delivery attempts',
    type: integerOption(1, 1024),
    standard: `${DELIVERY_CONCURRENCY}`,
  },
  {
    name: 'outbox_max_bytes',
    value: 'bytes',
    description: 'maximum size of undelivered records',
    type: integerOption(1, Number.MAX_SAFE_INTEGER),
    standard: `${OUTBOX_MAX_BYTES}`,
  },
  {
    name: 'outbox_max_records',
    value: 'n',
    description: 'maximum number of undelivered records',
    type: integerOption(1, 1_000_000_000),
    standard: `${OUTBOX_MAX_RECORDS}`,
  },
  {
    name: 'shutdown_grace_ms',
    value: 'ms',
    description: 'time from SIGTERM to SIGKILL, and again for the last deliveries',
    type: integerOption(0, DAY_MS),
    standard: `${SHUTDOWN_GRACE_MS}`,
  },
  {
    name: 'await_init',
    value: null,
    description: 'start without identity and webhook; wait for POST /api/v1/sandbox/init',
    type: SWITCH_OPTION,
    standard: 'false',
  },
  {
    name: 'log_level',
    value: 'level',
    description: 'level of the JSON log on stderr',
    type: choiceOption(LOG_LEVELS),
    standard: 'info',
  },
] as const satisfies readonly OptionRow[];
