import type { IncomingHttpHeaders } from 'node:http';
import { ApiError, invalidField } from '../contract/errors.ts';

/** A state of a file that a request's conditions are about. */
export interface Version {
  etag: string;
  /** In ms since the epoch. */
  modified_ms: number;
}

/** The conditions of an upload. */
export interface WriteConditions {
  /** The tags that the present file may have; `*` for any; null where it is not asked for. */
  if_match: readonly string[] | '*' | null;
  /** Whether there must be no file. */
  must_be_new: boolean;
}

/** What a request with conditions gets: the file, `not_modified` (304) or `failed` (412). RFC 9110, section 13.2.2. */
export function readOutcome(
  headers: IncomingHttpHeaders,
  version: Version,
): 'send' | 'not_modified' | 'failed' {
  const { 'if-match': match, 'if-none-match': none_match } = headers;
  if (match !== undefined && !matches(match, version.etag)) return 'failed';
  if (match === undefined && isAfter(version, headers['if-unmodified-since'])) return 'failed';
  if (none_match !== undefined) return matches(weakened(none_match), version.etag) ? 'not_modified' : 'send';
  const since = headers['if-modified-since'];
  return since !== undefined && isDate(since) && !isAfter(version, since) ? 'not_modified' : 'send';
}

/** Whether a range may be sent: without `If-Range`, or where it names this very state. RFC 9110, section 13.1.5. */
export function isRangeCurrent(if_range: string | string[] | undefined, version: Version): boolean {
  if (if_range === undefined) return true;
  const text = String(if_range);
  return text.startsWith('"') ? text === version.etag : text === new Date(version.modified_ms).toUTCString();
}

/** The conditions of an upload. Throws `invalid_request` for one that uploads do not know. */
export function writeConditions(headers: IncomingHttpHeaders): WriteConditions {
  const { 'if-match': match, 'if-none-match': none_match } = headers;
  if (none_match !== undefined && none_match.trim() !== '*') throw invalidField('If-None-Match', 'must be *');
  const if_match = match === undefined ? null : match.trim() === '*' ? '*' : tagsOf(match);
  return { if_match, must_be_new: none_match !== undefined };
}

/** Throws `precondition_failed` unless the present file, null for none, fulfils the conditions. */
export function checkConditions({ if_match, must_be_new }: WriteConditions, etag: string | null): void {
  const is_match = if_match === null || (etag !== null && (if_match === '*' || if_match.includes(etag)));
  if (is_match && !(must_be_new && etag !== null)) return;
  throw new ApiError('precondition_failed', undefined, { etag });
}

function matches(header: string, etag: string): boolean {
  return header.trim() === '*' || tagsOf(header).includes(etag);
}

/** The tags of a list; weak ones keep their prefix, so that they equal none of ours. */
function tagsOf(header: string): string[] {
  return header.match(/(?:W\/)?"[^"]*"/g) ?? [];
}

/** `If-None-Match` compares without regard to weakness. */
function weakened(header: string): string {
  return header.replaceAll('W/"', '"');
}

/** Dates have no fractions of a second. */
function isAfter({ modified_ms }: Version, date: string | undefined): boolean {
  return date !== undefined && isDate(date) && Math.floor(modified_ms / 1_000) * 1_000 > Date.parse(date);
}

function isDate(text: string): boolean {
  return !Number.isNaN(Date.parse(text));
}
