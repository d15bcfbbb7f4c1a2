import type { IncomingHttpHeaders } from 'node:http';
import { ApiError, invalidField } from '../contract/errors.ts';

/** A state of a file that a request's conditions are about. */
export interface Version {
  etag: string;
  /** In ms since the epoch. */
  modified_ms: number;
}

/** The conditions of a request for which a file must be as the client knows it. */
export interface Conditions {
  /** The tags that the file may have; `*` for any; null where it is not asked for. */
  if_match: readonly string[] | '*' | null;
  /** The file must not be newer, in ms since the epoch; null where it is not asked for, or where tags decide. */
  unmodified_since_ms: number | null;
}

/** The conditions of an upload. */
export interface WriteConditions extends Conditions {
  /** Whether there must be no file. */
  must_be_new: boolean;
}

const WRITE_CONDITIONS = ['if-match', 'if-none-match', 'if-unmodified-since'] as const;

/** What a request with conditions gets: the file, `not_modified` (304) or `failed` (412). RFC 9110, section 13.2.2. */
export function readOutcome(
  headers: IncomingHttpHeaders,
  version: Version,
  now_ms: number,
): 'send' | 'not_modified' | 'failed' {
  if (!isAsKnown(conditionsOf(headers), version)) return 'failed';
  const { 'if-none-match': none_match, 'if-modified-since': since } = headers;
  if (none_match !== undefined) {
    const tags = listOf(none_match);
    const is_known = tags === '*' || tags.map(withoutWeakness).includes(version.etag);
    return is_known ? 'not_modified' : 'send';
  }
  const since_ms = dateOf(since);
  // No answer can have told of a time that is still to come.
  if (since_ms === null || since_ms > now_ms) return 'send';
  return isAfter(version, since_ms) ? 'send' : 'not_modified';
}

/**
 * Whether a range may be sent: without `If-Range`, or where it is the tag of this very state. A date never is enough,
 * because a file can change twice within its second. RFC 9110, sections 8.8.2.2 and 13.1.5.
 */
export function isRangeCurrent(if_range: string | string[] | undefined, { etag }: Version): boolean {
  return if_range === undefined || if_range === etag;
}

/** The conditions of an upload. Throws `invalid_request` for one that uploads do not know. */
export function writeConditions(headers: IncomingHttpHeaders): WriteConditions {
  const none_match = headers['if-none-match'];
  if (none_match !== undefined && none_match.trim() !== '*') throw invalidField('If-None-Match', 'must be *');
  return { ...conditionsOf(headers), must_be_new: none_match !== undefined };
}

/** Whether the present file matters to an upload. */
export function hasConditions({ if_match, unmodified_since_ms, must_be_new }: WriteConditions): boolean {
  return if_match !== null || unmodified_since_ms !== null || must_be_new;
}

/** Throws `invalid_request` for a condition of a request that has none: it must not be done as if there were no condition. */
export function checkUnconditional(headers: IncomingHttpHeaders): void {
  const given = WRITE_CONDITIONS.find((name) => headers[name] !== undefined);
  if (given === undefined) return;
  const field = given.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
  throw invalidField(field, 'is accepted for the content of files only');
}

/** Throws `precondition_failed` unless the present file, null for none, fulfils the conditions. */
export function checkConditions(conditions: WriteConditions, version: Version | null): void {
  if (isAsKnown(conditions, version) && !(conditions.must_be_new && version !== null)) return;
  throw new ApiError('precondition_failed', undefined, { etag: version?.etag ?? null });
}

function conditionsOf(headers: IncomingHttpHeaders): Conditions {
  const { 'if-match': match, 'if-unmodified-since': since } = headers;
  return match === undefined
    ? { if_match: null, unmodified_since_ms: dateOf(since) }
    : { if_match: listOf(match), unmodified_since_ms: null };
}

/** What is missing has no date that could be newer. */
function isAsKnown({ if_match, unmodified_since_ms }: Conditions, version: Version | null): boolean {
  if (if_match !== null) return version !== null && (if_match === '*' || if_match.includes(version.etag));
  return unmodified_since_ms === null || version === null || !isAfter(version, unmodified_since_ms);
}

/** The tags of a list; weak ones keep their prefix, so that they equal none of ours. */
function listOf(header: string): string[] | '*' {
  return header.trim() === '*' ? '*' : (header.match(/(?:W\/)?"[^"]*"/g) ?? []);
}

/** `If-None-Match` compares without regard to weakness. */
function withoutWeakness(tag: string): string {
  return tag.replace(/^W\//, '');
}

/** Null also for what is no date: it is then as if it were not there. */
function dateOf(header: string | undefined): number | null {
  return header === undefined ? null : httpDate(header.trim());
}

/** Dates have no fractions of a second. */
function isAfter({ modified_ms }: Version, date_ms: number): boolean {
  return Math.floor(modified_ms / 1_000) * 1_000 > date_ms;
}

const DAY = '(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const MONTH = '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const TIME = '\\d{2}:\\d{2}:\\d{2}';
const IMF_FIXDATE = new RegExp(`^${DAY}, \\d{2} ${MONTH} \\d{4} ${TIME} GMT$`);
const RFC_850 = new RegExp(`^${DAY}[a-z]{3,6}, \\d{2}-${MONTH}-\\d{2} ${TIME} GMT$`);
const ASCTIME = new RegExp(`^${DAY} ${MONTH} [ \\d]\\d ${TIME} \\d{4}$`);

/** The time of an HTTP date, in ms since the epoch; null for any other text. RFC 9110, section 5.6.7. */
export function httpDate(text: string): number | null {
  if (!IMF_FIXDATE.test(text) && !RFC_850.test(text) && !ASCTIME.test(text)) return null;
  const time_ms = Date.parse(ASCTIME.test(text) ? `${text} GMT` : text);
  return Number.isNaN(time_ms) ? null : time_ms;
}
