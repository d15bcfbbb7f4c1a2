import { isUtf8 } from 'node:buffer';
import { invalidField } from '../../contract/errors.ts';
import type { PtySize } from '../../contract/processes.ts';
import { checkPtySize } from '../../process/start/request.ts';

/** A frame from the client of an attached WebSocket. Source: contract section 4, GET `/processes/{id}/attach`. */
export type AttachFrame =
  | { type: 'stdin'; data: Buffer }
  | { type: 'resize'; size: PtySize }
  | { type: 'signal'; signal: string };

const FIELDS: Record<string, string[]> = {
  stdin: ['data', 'encoding'],
  resize: ['cols', 'rows'],
  signal: ['signal'],
};

/** Parses a client's frame. Throws `invalid_request` that names the field. */
export function parseFrame(data: Buffer, is_binary: boolean): AttachFrame {
  const { type, ...frame } = objectOf(data, is_binary);
  const fields = typeof type === 'string' && Object.hasOwn(FIELDS, type) ? FIELDS[type] : undefined;
  if (!fields) throw invalidField('type', `must be one of ${Object.keys(FIELDS).join(', ')}`);
  const other = Object.keys(frame).find((field) => !fields.includes(field));
  if (other !== undefined) throw invalidField(other, 'unknown field');
  if (type === 'stdin') return { type, data: bytesOf(frame.data, frame.encoding) };
  if (type === 'signal') return { type, signal: textOf(frame.signal, 'signal') };
  checkPtySize(frame, 'resize');
  return { type: 'resize', size: frame };
}

function objectOf(data: Buffer, is_binary: boolean): Record<string, unknown> {
  if (is_binary || !isUtf8(data)) throw invalidField('frame', 'must be text');
  try {
    const value = JSON.parse(data.toString('utf8'));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    throw invalidField('frame', 'must be JSON');
  }
  throw invalidField('frame', 'must be a JSON object');
}

function bytesOf(value: unknown, encoding: unknown): Buffer {
  const text = textOf(value, 'data');
  if (encoding === undefined) return Buffer.from(text, 'utf8');
  if (encoding !== 'base64') throw invalidField('encoding', 'must be base64');
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]*={0,2}$/.test(text)) {
    throw invalidField('data', 'must be base64');
  }
  return Buffer.from(text, 'base64');
}

function textOf(value: unknown, field: string): string {
  if (typeof value !== 'string') throw invalidField(field, 'must be a string');
  return value;
}
