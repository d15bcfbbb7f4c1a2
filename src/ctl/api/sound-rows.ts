import type { TSchema } from 'typebox';
import { EXIT, type ExitCode } from '../failure.ts';
import type { Output } from '../terminal/output.ts';
import type { RowKind } from './row-kinds.ts';

/** Of more rows the number is told. */
const NAMED_MAX = 10;

/** A list as it can be shown. */
export interface SoundRows<Row> {
  rows: Row[];
  /** Why each of the others cannot be, by name. */
  left_out: string[];
}

/**
 * The rows of an answer that are as their schema says, in their order, and why the others are not. Fields and words that
 * only a newer program knows are no fault, nor are missing ones that are not shown.
 */
export async function soundRows<Row>(answered: readonly unknown[], kind: RowKind): Promise<SoundRows<Row>> {
  const problemIn = await checkOf(kind);
  const [rows, left_out]: [Row[], string[]] = [[], []];
  for (const [index, row] of answered.entries()) {
    const problem = problemIn(row);
    if (problem === null) {
      rows.push(row as Row);
      continue;
    }
    const id = (row as Record<string, unknown> | null)?.[kind.id];
    const name = typeof id === 'string' ? id : `number ${index + 1}`;
    left_out.push(`${kind.name} ${name} is not shown: ${problem}`);
  }
  return { rows, left_out };
}

/** Says on stderr which rows are not shown; returns the exit code of a list without them. */
export async function tellLeftOut(err: Output, left_out: readonly string[]): Promise<ExitCode> {
  for (const each of left_out.slice(0, NAMED_MAX)) await err.line(`sandboxctl: ${each}`);
  const more = left_out.length - NAMED_MAX;
  if (more > 0) await err.line(`sandboxctl: ${more} more are not shown`);
  return left_out.length === 0 ? EXIT.ok : EXIT.failed;
}

/** What is wrong with a row, in words; null for nothing. */
type RowCheck = (row: unknown) => string | null;

/** Making one takes as long as thousands of checks. */
const CHECKS = new Map<RowKind, Promise<RowCheck>>();

function checkOf(kind: RowKind): Promise<RowCheck> {
  const check = CHECKS.get(kind) ?? makeCheck(kind);
  CHECKS.set(kind, check);
  return check;
}

async function makeCheck(kind: RowKind): Promise<RowCheck> {
  const [{ Compile }, { problemOf }, whole] = await Promise.all([
    import('typebox/compile'),
    import('../../base/schema.ts'),
    kind.schema(),
  ]);
  const schema = shownFields(whole as JsonSchema, kind);
  const compiled = Compile(schema);
  return (row) => {
    if (compiled.Check(row)) return null;
    const { field, problem } = problemOf(schema, row) ?? { field: '', problem: 'is not valid' };
    return `${field} ${problem}`.trim();
  };
}

interface JsonSchema {
  additionalProperties?: unknown;
  enum?: unknown[];
  properties?: Record<string, JsonSchema>;
  required?: string[];
  anyOf?: JsonSchema[];
  items?: JsonSchema;
}

function shownFields(whole: JsonSchema, { fields, later }: RowKind): TSchema {
  const { properties = {}, ...rest } = loosened(whole);
  const shown = [...fields, ...later].map((name) => [name, properties[name]]);
  return { ...rest, properties: Object.fromEntries(shown), required: fields };
}

/** The schema without what a newer program may answer otherwise: further fields, and words of enumerations. */
function loosened(schema: JsonSchema): JsonSchema {
  const { additionalProperties: others, enum: words, properties, anyOf, items, ...rest } = schema;
  const within = Object.entries(properties ?? {}).map(([name, each]) => [name, loosened(each)]);
  return {
    ...rest,
    ...(typeof others === 'object' && { additionalProperties: others }),
    ...(words && { type: 'string' }),
    ...(properties && { properties: Object.fromEntries(within) }),
    ...(anyOf && { anyOf: anyOf.map(loosened) }),
    ...(items && { items: loosened(items) }),
  };
}
