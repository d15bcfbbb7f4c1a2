/** The rows of a list: how one is named, and what it must have so that it can be shown. */
export interface RowKind {
  name: string;
  /** The field that tells one from another. */
  id: string;
  /** Loaded with the first list. */
  schema: () => Promise<object>;
  fields: string[];
  /** Fields that older programs do not answer with. */
  later: string[];
}

const TEXT = { type: 'string' };
const WHOLE = { type: 'integer' };
const OPTIONAL_WHOLE = { anyOf: [WHOLE, { type: 'null' }] };
const TIME = { type: 'string', format: 'date-time' };
const OPTIONAL_TIME = { anyOf: [TIME, { type: 'null' }] };
const FLAG = { type: 'boolean' };

function objectOf(properties: Record<string, object>): () => Promise<object> {
  return async () => ({ type: 'object', properties });
}

/** Processes. Contract section 4, "Processes". */
export const PROCESS_ROWS: RowKind = {
  name: 'process',
  id: 'process_id',
  schema: async () => (await import('../../contract/processes.ts')).ProcessData,
  fields: [
    ...['process_id', 'pid', 'state', 'exit_code', 'exited_at', 'started_at', 'restart_count'],
    ...['resource_usage', 'name', 'command'],
  ],
  later: ['ready', 'command_truncated'],
};

/** Records with the state of their delivery. Contract section 4, "Deliveries". */
export const DELIVERY_ROWS: RowKind = {
  name: 'record',
  id: 'event_id',
  schema: async () =>
    (await import('../../contract/deliveries.ts')).DeliveryPageData.properties.deliveries.items,
  fields: [
    ...['event_id', 'event_type', 'sequence', 'state', 'created_at', 'next_attempt_at', 'attempt_count'],
    ...['last_status', 'last_error'],
  ],
  later: ['last_error_detail'],
};

/** Files and directories. Contract section 4, "Files". */
export const FILE_ROWS: RowKind = {
  name: 'entry',
  id: 'path',
  schema: async () => (await import('../../contract/files.ts')).FileEntryData,
  fields: ['path', 'type', 'is_link', 'link_target', 'mode', 'user', 'group', 'size', 'mod_time'],
  later: [],
};

/** A manager's sandboxes. Contract section 7, "Sandboxes". */
export const SANDBOX_ROWS: RowKind = {
  name: 'sandbox',
  id: 'id',
  schema: objectOf({
    id: TEXT,
    status: TEXT,
    failure: { anyOf: [TEXT, { type: 'null' }] },
    template_id: TEXT,
    created_at: TIME,
    expires_at: OPTIONAL_TIME,
    resources: { type: 'object', properties: { memory: TEXT }, required: ['memory'] },
    metadata: { type: 'object', additionalProperties: TEXT },
  }),
  fields: ['id', 'status', 'failure', 'template_id', 'created_at', 'expires_at', 'resources', 'metadata'],
  later: [],
};

/** Quotas. Contract section 7, "Quota status". */
export const QUOTA_ROWS: RowKind = {
  name: 'quota',
  id: 'dimension',
  schema: objectOf({
    dimension: TEXT,
    unlimited: FLAG,
    limit_value: OPTIONAL_WHOLE,
    interval_ms: OPTIONAL_WHOLE,
    burst_value: OPTIONAL_WHOLE,
    current: OPTIONAL_WHOLE,
    remaining: OPTIONAL_WHOLE,
    unit: TEXT,
    source: TEXT,
    enforced: FLAG,
  }),
  fields: [
    ...['dimension', 'unlimited', 'limit_value', 'interval_ms', 'burst_value', 'current', 'remaining'],
    ...['unit', 'source'],
  ],
  later: ['enforced'],
};

/** Usage windows. Contract section 7, "Usage". */
export const WINDOW_ROWS: RowKind = {
  name: 'window',
  id: 'window_id',
  schema: objectOf({
    sandbox_id: TEXT,
    window_type: TEXT,
    window_start: TIME,
    window_end: TIME,
    value: { type: 'number' },
    unit: TEXT,
  }),
  fields: ['sandbox_id', 'window_type', 'window_start', 'window_end', 'value', 'unit'],
  later: [],
};

/** Events of the team's feed. Contract section 7, "The feed of events". */
export const FEED_ROWS: RowKind = {
  name: 'event',
  id: 'event_id',
  schema: objectOf({ body: TEXT }),
  fields: ['body'],
  later: [],
};
