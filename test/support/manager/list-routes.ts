import { dereferenced } from '../dereferenced.ts';

/** A value of each query parameter by which lists are narrowed; those of few or no rows show what is looked at in vain. */
const SAMPLES: Record<string, unknown[]> = {
  sandbox_id: ['sbx_00000000-0000-7000-8000-000000000000'],
  template_id: ['other'],
  metadata: ['owner:nobody'],
  endpoint: ['http://nobody.invalid/'],
  cursor: [],
  limit: [200],
  offset: [3_000],
  paused: [true, false],
};

interface Parameter {
  name: string;
  in: string;
  schema: { enum?: unknown[]; anyOf?: { const?: unknown }[] };
}

interface Document {
  paths: Record<string, Record<string, { parameters?: Parameter[] }>>;
}

/**
 * Every list of a manager's API, as its document names them, with its query: alone, narrowed by each parameter, and for
 * `pairs` by each two of them.
 */
export async function listRoutes(url: string, narrowed_by: 'one' | 'pairs'): Promise<string[]> {
  const { paths } = dereferenced((await (await fetch(`${url}/openapi.json`)).json()) as Document);
  return Object.entries(paths).flatMap(([path, { get }]) => {
    const parameters = (get?.parameters ?? []).filter((each) => each.in === 'query');
    if (path.includes('{') || !parameters.some(({ name }) => name === 'limit')) return [];
    const choices = parameters.flatMap((parameter) =>
      valuesOf(parameter, path).map((value) => [parameter.name, String(value)] as const),
    );
    const pairs = choices.flatMap((one, i) =>
      choices.slice(i + 1).flatMap((other) => (one[0] === other[0] ? [] : [[one, other]])),
    );
    const queries = [[], ...choices.map((one) => [one]), ...(narrowed_by === 'pairs' ? pairs : [])];
    return queries.map((query) => `${path}?${new URLSearchParams(Object.fromEntries(query))}`);
  });
}

function valuesOf({ name, schema }: Parameter, path: string): unknown[] {
  const named = schema.enum ?? schema.anyOf?.map((each) => each.const) ?? [];
  if (named.length > 0 && named.every((value) => typeof value === 'string')) return named;
  const samples = SAMPLES[name];
  if (samples === undefined) throw new Error(`${path}: there is no sample of ${name}`);
  return samples;
}
