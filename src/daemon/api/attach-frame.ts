import { isUtf8 } from 'node:buffer';
import { type Static, type TSchema, Type } from 'typebox';
import { problemOf } from '../../base/schema.ts';
import { type ApiError, errorBody, FieldError, invalidField } from '../../contract/errors.ts';
import { closedObject } from '../../contract/field.ts';
import { type ProcessView, type PtySize, PtySizeBody } from '../../contract/processes.ts';
import type { OutputItem } from '../../process/output/output-reader.ts';
import { outputJson } from './process-output.ts';

/** A frame from the client of an attached WebSocket. Source: contract section 4, GET `/processes/{id}/attach`. */
export type AttachFrame =
  | { type: 'stdin'; data: Buffer; end?: boolean }
  | { type: 'resize'; size: PtySize }
  | { type: 'signal'; signal: string };

const Stdin = closedObject({
  data: Type.String(),
  encoding: Type.Optional(Type.Literal('base64')),
  end: Type.Optional(Type.Boolean()),
});
const Signal = closedObject({ signal: Type.String() });
const TYPES = ['stdin', 'resize', 'signal'];
const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** How the frames of an attached WebSocket are read and written, as text. */
export interface AttachFrames {
  /** Throws `invalid_request` that names the field. */
  parse(data: Buffer, is_binary: boolean): AttachFrame;
  output(item: OutputItem & { type: 'output' }): string;
  exit(process: ProcessView): string;
  error(error: ApiError): string;
}

/** The frames of `/processes/{id}/attach`. */
export const PROCESS_FRAMES: AttachFrames = {
  parse: parseFrame,
  output: (item) => outputJson(item, { type: 'output' }),
  exit: (process) => JSON.stringify({ type: 'exit', process }),
  error: (error) => JSON.stringify({ type: 'error', error: errorBody(error).error }),
};

/** Parses a client's frame. Throws `invalid_request` that names the field. */
export function parseFrame(data: Buffer, is_binary: boolean): AttachFrame {
  const { type, ...frame } = frameObject(data, is_binary);
  switch (type) {
    case 'stdin': {
      const stdin = checkedFrame(Stdin, frame);
      return { type, data: bytesOf(stdin), ...(stdin.end && { end: true }) };
    }
    case 'resize':
      return { type, size: checkedFrame(PtySizeBody, frame, 'resize.') };
    case 'signal':
      return { type, signal: checkedFrame(Signal, frame).signal };
    default:
      throw invalidField('type', `must be one of ${TYPES.join(', ')}`);
  }
}

/** The object in a frame. Throws `invalid_request` if there is none. */
export function frameObject(data: Buffer, is_binary: boolean): Record<string, unknown> {
  if (is_binary || !isUtf8(data)) throw invalidField('frame', 'must be text');
  try {
    const value = JSON.parse(data.toString('utf8'));
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    throw invalidField('frame', 'must be JSON');
  }
  throw invalidField('frame', 'must be a JSON object');
}

/** The frame, if it matches the schema; `prefix` begins the name of a field that does not. */
export function checkedFrame<Schema extends TSchema>(
  schema: Schema,
  frame: unknown,
  prefix = '',
): Static<Schema> {
  const wrong = problemOf(schema, frame);
  if (wrong) throw new FieldError({ ...wrong, field: prefix + wrong.field });
  return frame as Static<Schema>;
}

function bytesOf({ data, encoding }: Static<typeof Stdin>): Buffer {
  if (encoding === undefined) return Buffer.from(data, 'utf8');
  if (data.length % 4 !== 0 || !BASE64.test(data)) throw invalidField('data', 'must be base64');
  return Buffer.from(data, 'base64');
}
