import { OUTPUT_STREAMS, type OutputStream } from '../../contract/processes.ts';
import type { OutputLog } from './output-log.ts';

/** The end of both streams, and whether there was more before it. */
export interface OutputTail {
  stdout: Buffer;
  stderr: Buffer;
  stdout_truncated: boolean;
  stderr_truncated: boolean;
}

/** The last `max_bytes` of each stream, as far as they can be read now. */
export async function outputTail(
  logs: Record<OutputStream, OutputLog>,
  max_bytes: number,
): Promise<OutputTail> {
  const [stdout, stderr] = await Promise.all(OUTPUT_STREAMS.map((stream) => tailOf(logs[stream], max_bytes)));
  const [out, err] = [stdout as Tail, stderr as Tail];
  return {
    stdout: out.data,
    stderr: err.data,
    stdout_truncated: out.truncated,
    stderr_truncated: err.truncated,
  };
}

interface Tail {
  data: Buffer;
  truncated: boolean;
}

async function tailOf(log: OutputLog, max_bytes: number): Promise<Tail> {
  const parts: Buffer[] = [];
  const { end } = log;
  let start = Math.max(log.first, end - max_bytes);
  for (let at = start; at < end; ) {
    const read = await log.read(at, end - at);
    if ('gone' in read) {
      parts.length = 0; // bytes on both sides of a gap are not one text
      start = at = read.gone;
    } else {
      if (read.data.length === 0) break;
      parts.push(read.data);
      at += read.data.length;
    }
  }
  return { data: Buffer.concat(parts), truncated: start > 0 };
}
