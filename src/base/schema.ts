import type { TSchema } from 'typebox';
import { Value } from 'typebox/value';
import type { Problem } from '../contract/errors.ts';

type SchemaError = ReturnType<typeof Value.Errors>[number];

/** The keywords of a schema that its messages speak of. */
interface Keywords {
  type?: string;
  enum?: unknown[];
  const?: unknown;
  minimum?: number;
  maximum?: number;
  description?: string;
  properties?: Record<string, Keywords>;
}

/**
 * The first field of a value that does not match the schema, and the problem in words; null if the value matches. A
 * text or a list that does not match "must be" what the `description` in its schema says.
 */
export function problemOf(schema: TSchema, value: unknown): Problem | null {
  if (Value.Check(schema, value)) return null;
  const [error] = Value.Errors(schema, value);
  if (!error) return { field: '', problem: 'is not valid' };
  const field = pathOf(error.instancePath);
  // Fields that the schema does not name are checked against `false`.
  if (error.keyword === 'boolean') return { field, problem: 'unknown field' };
  const within = (name = '') => (field === '' ? name : `${field}.${name}`);
  if (error.keyword === 'additionalProperties') {
    return { field: within(error.params.additionalProperties[0]), problem: 'unknown field' };
  }
  const { schemaPath, instancePath } = error;
  if (schemaPath.endsWith('/propertyNames')) {
    const { description = 'valid' } = keywordsAt(schema, schemaPath);
    return { field: pathOf(parentOf(instancePath)), problem: `names must be ${description}` };
  }
  const [list] = schemaPath.split('/items');
  const { description } = keywordsAt(schema, list as string);
  if (list !== schemaPath && description) {
    // A list that says what it holds speaks for its entries.
    return { field: pathOf(instancePath.replace(/\/\d+(\/.*)?$/, '')), problem: `must be ${description}` };
  }
  const at = keywordsAt(schema, schemaPath);
  if (error.keyword === 'required') {
    const [name = ''] = error.params.requiredProperties;
    return { field: within(name), problem: absence(at.properties?.[name]) };
  }
  return { field, problem: sentence(error, at) };
}

function sentence({ keyword, params, message }: SchemaError, at: Keywords): string {
  if (at.description && (at.type === 'string' || at.type === 'array')) return `must be ${at.description}`;
  switch (keyword) {
    case 'type':
      return at.enum ? oneOf(at.enum) : `must be ${typeName(String(params.type), at)}`;
    case 'minimum':
    case 'maximum':
      return `must be ${typeName('integer', at)}`;
    case 'enum':
      return oneOf(at.enum ?? []);
    case 'const':
      return `must be ${String(at.const)}`;
    case 'pattern':
      return 'is malformed';
    case 'minLength':
    case 'minItems':
      return 'must not be empty';
    case 'maxLength':
      return `must not be longer than ${params.limit} characters`;
    case 'maxProperties':
      return `must not have more than ${params.limit} entries`;
    default:
      return message;
  }
}

function absence(missing: Keywords | undefined): string {
  return missing?.enum ? `is required: one of ${missing.enum.join(', ')}` : 'is required';
}

function oneOf(values: unknown[]): string {
  return `must be one of ${values.join(', ')}`;
}

function typeName(type: string, { minimum, maximum }: Keywords): string {
  switch (type) {
    case 'integer':
      if (minimum === undefined) return 'an integer';
      return maximum === undefined
        ? `an integer of at least ${minimum}`
        : `an integer from ${minimum} to ${maximum}`;
    case 'boolean':
      return 'true or false';
    case 'array':
    case 'object':
      return `an ${type}`;
    default:
      return `a ${type}`;
  }
}

/** The dotted form of a JSON pointer. */
function pathOf(pointer: string): string {
  return stepsOf(pointer).join('.');
}

function parentOf(pointer: string): string {
  return pointer.slice(0, pointer.lastIndexOf('/'));
}

function stepsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** The part of a schema that an error is about; empty if its path cannot be followed. */
function keywordsAt(schema: TSchema, path: string): Keywords {
  let at: unknown = schema;
  for (const step of stepsOf(path)) at = (at as Record<string, unknown> | undefined)?.[step];
  return (at ?? {}) as Keywords;
}
