import type { Static } from 'typebox';
import { keepHeapSmall } from '../../../base/engine/heap.ts';
import { success } from '../../../base/http/app.ts';
import { allowLongBody } from '../../../base/http/listener.ts';
import { disconnectSignal } from '../../../base/http/sse-response.ts';
import type { FileWriteQuery } from '../../../contract/schema/files.ts';
import { type BytePath, pathFields } from '../../../files/byte-path.ts';
import { writeConditions } from '../../../files/conditions.ts';
import type { Exchange } from '../process-output.ts';
import type { RoutedFiles } from './routed-files.ts';

/** The query of an upload or of a directory to make. */
export type WriteQuery = Static<typeof FileWriteQuery>;

/** Answers an upload once the file is in its place and synced. Source: contract section 4, "Files". */
export async function answerUpload(
  { own, transfers }: RoutedFiles,
  path: BytePath,
  query: WriteQuery,
  exchange: Exchange,
): Promise<unknown> {
  const { request, reply } = exchange;
  const conditions = writeConditions(request.headers);
  transfers.begin(exchange);
  allowLongBody(request, reply);
  keepHeapSmall();
  const { is_new, size, etag } = await own.write({
    path,
    mode: modeOf(query),
    parents: query.parents,
    conditions,
    data: request.raw,
    signal: disconnectSignal(reply),
    onReceived: () => transfers.received(exchange),
  });
  reply.code(is_new ? 201 : 200).header('etag', etag);
  return success({ written: true, ...pathFields(path), size, etag });
}

/** Answers a request to make a directory. */
export async function answerMakeDirectory(
  { own }: RoutedFiles,
  path: BytePath,
  query: WriteQuery,
  { request, reply }: Exchange,
): Promise<unknown> {
  request.raw.resume();
  const created = await own.makeDirectory({ path, recursive: query.recursive, mode: modeOf(query) });
  reply.code(created ? 201 : 200);
  return success({ created });
}

function modeOf({ mode }: WriteQuery): number | null {
  return mode === undefined ? null : Number.parseInt(mode, 8);
}
