/** Version, trace id, parent id and flags; beyond them only a later version may have fields. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[^,]*)?$/;
const NO_TRACE = '0'.repeat(32);
const NO_PARENT = '0'.repeat(16);
/** The only flag that every version has. */
const SAMPLED = 0x01;

/**
 * The valid `traceparent` (W3C Trace Context) of a request, to be carried on: version 00 unchanged, a later version as
 * version 00; undefined if it is missing, not valid or given twice. Source: contract section 2.
 */
export function traceparentOf(value: string | string[] | undefined): string | undefined {
  if (typeof value !== 'string') return undefined;
  const [, version, trace_id, parent_id, flags = '', later] = TRACEPARENT.exec(value) ?? [];
  if (version === undefined || version === 'ff' || trace_id === NO_TRACE || parent_id === NO_PARENT)
    return undefined;
  if (version === '00') return later === undefined ? value : undefined;
  const sampled = Number.parseInt(flags, 16) & SAMPLED;
  return `00-${trace_id}-${parent_id}-0${sampled}`;
}

/** The trace of a record or request with these headers, as log lines name it: nothing where there is none. */
export function traceOf(headers: Record<string, string | string[] | undefined>): { trace_id?: string } {
  const traceparent = traceparentOf(headers.traceparent);
  return traceparent === undefined ? {} : { trace_id: traceparent.split('-')[1] as string };
}
