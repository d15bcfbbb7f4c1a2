import type { TSchema } from 'typebox';
import { type FieldError, invalidField } from '../../contract/errors.ts';
import { problemOf } from '../schema.ts';

/** How a parameter is described: a type of JSON Schema, or the values that it takes. */
interface Parameter {
  type?: string;
  default?: unknown;
  /** A higher number is lowered to this one. */
  'x-cap'?: number;
}

/** A converted query, or the error that names the parameter which is unknown, given twice, or not of its type. */
export type ConvertedQuery = { value: Record<string, unknown> } | { error: FieldError };

/** Converts the texts of a query to the types of its schema (an array holds the texts of a repeated parameter), fills in defaults, and checks them. */
export function convertQuery(schema: TSchema, query: object): ConvertedQuery {
  const { properties: parameters = {} } = schema as { properties?: Record<string, Parameter> };
  const converted: Record<string, unknown> = {};
  for (const [name, text] of Object.entries(query)) {
    if (!Object.hasOwn(parameters, name)) return refusal(name, 'unknown query parameter');
    const parameter = parameters[name] as Parameter;
    if (parameter.type === 'array') converted[name] = [text].flat();
    else if (typeof text !== 'string') return refusal(name, 'must be given once');
    else converted[name] = typedValue(text, parameter);
  }
  for (const [name, parameter] of Object.entries(parameters)) {
    if (parameter.default !== undefined) converted[name] ??= parameter.default;
  }
  const wrong = problemOf(schema, converted);
  return wrong ? refusal(wrong.field, wrong.problem) : { value: converted };
}

/** Throws `invalid_request` naming a parameter of the request's target whose text is not UTF-8. */
export function checkQueryText(url: string): void {
  const [, text = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? [];
  if (!text.includes('%')) return;
  for (const parameter of text.split('&')) {
    const [name = '', value = ''] = parameter.split('=', 2);
    if (!isDecodable(name) || !isDecodable(value)) throw invalidField(name, 'must be UTF-8');
  }
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function refusal(name: string, problem: string): ConvertedQuery {
  return { error: invalidField(name, problem) };
}

/** The value that a text stands for; the text itself if it stands for none of the type, which the check then refuses. */
function typedValue(text: string, { type, 'x-cap': cap }: Parameter): unknown {
  if (type === 'boolean') return booleanOf(text) ?? text;
  if (type !== 'integer') return text;
  if (cap !== undefined) return /^\d+(e\+?\d+)?$/i.test(text) ? Math.min(Number(text), cap) : text;
  // Up to 15 digits are exact.
  return /^(0|[1-9]\d{0,14})$/.test(text) ? Number(text) : text;
}

function booleanOf(text: string): boolean | undefined {
  if (text === '' || text === 'true' || text === '1') return true;
  return text === 'false' || text === '0' ? false : undefined;
}
