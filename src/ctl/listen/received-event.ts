/** An event as its consumer sees it. `payload_text` is the payload's JSON on one line, otherwise exactly as sent. */
export interface ReceivedEvent {
  event_id: string;
  event_type: string;
  timestamp: string;
  sequence: number | null;
  payload: Record<string, unknown>;
  payload_text: string;
}

/** The event in a delivered body, or null if there is none. Contract section 2, "Body". */
export function parseEvent(body: string): ReceivedEvent | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return null;
  }
  if (!isObject(parsed)) return null;
  const { event_id, event_type, timestamp, sequence, payload } = parsed;
  if (typeof event_id !== 'string' || typeof event_type !== 'string' || !isObject(payload)) return null;
  return {
    event_id,
    event_type,
    timestamp: typeof timestamp === 'string' ? timestamp : '',
    sequence: typeof sequence === 'number' ? sequence : null,
    payload,
    payload_text: payloadText(body) ?? JSON.stringify(payload),
  };
}

/** JSON on one line. Line ends occur only between tokens, where a space means the same. */
export function jsonOnOneLine(json: string): string {
  return json.replace(/[\r\n]/g, ' ');
}

/** The payload as sent, the last key of a body: printing a parsed one could change its numbers. */
function payloadText(body: string): string | null {
  const key = '"payload":';
  const start = body.indexOf(key);
  if (!body.startsWith('{"event_id":') || !body.endsWith('}') || start < 0) return null;
  const text = body.slice(start + key.length, -1);
  return text.startsWith('{') ? jsonOnOneLine(text) : null;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
