import type { Readable } from 'node:stream';
import { BODY_MAX_BYTES } from '../contract/defaults.ts';
import type { DaemonContext } from './context.ts';
import { EXIT, type ExitCode, Failure } from './failure.ts';

/**
 * Publishes an `agent.event` with this JSON text as its payload, unchanged; `-` reads it from `stdin`. An invalid
 * payload is a usage error. Contract section 4, `POST /webhook/publish`.
 */
export async function publish(
  { daemon, out, json }: DaemonContext,
  text: string,
  stdin: Readable,
  idempotency_key?: string,
): Promise<ExitCode> {
  const payload = checked(text === '-' ? await readAll(stdin) : text);
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (idempotency_key !== undefined) headers['idempotency-key'] = idempotency_key;
  // As text: its numbers and spaces stay as they were typed.
  const body = `{"payload":${payload}}` as unknown as { payload: Record<string, unknown> };
  const record = await daemon.POST('/api/v1/webhook/publish', { headers, body });
  await out.line(json ? JSON.stringify(record) : `#${record.sequence} ${record.event_id}`);
  return EXIT.ok;
}

/** Checks the payload here, because text that is no complete JSON object could add keys to the request around it. */
function checked(text: string): string {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Failure(EXIT.usage, `the payload is not JSON: ${(error as Error).message}`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Failure(EXIT.usage, `the payload must be a JSON object, like '{"step":1}'`);
  }
  return text;
}

async function readAll(stdin: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size_bytes = 0;
  for await (const chunk of stdin) {
    chunks.push(chunk);
    size_bytes += chunk.length;
    if (size_bytes > BODY_MAX_BYTES) throw new Failure(EXIT.usage, 'the payload is larger than 1 MiB');
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks));
  } catch {
    throw new Failure(EXIT.usage, 'the payload is not UTF-8');
  }
}
