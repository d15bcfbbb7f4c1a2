import type { Static, TObject, TProperties, TSchema } from 'typebox';
import type { Method, PathParameters, Route, Routes } from '../../contract/routes/route.ts';

/**
 * The routes that clients call, by path and method, from a table's rows: in the form which `openapi-typescript` gives them,
 * by which the build makes the package's types of the documents.
 */
export type PathsOf<Rows extends Routes> = {
  [Row in CalledOf<Rows> as DocumentPath<Row['path']>]: MethodsOf<
    Extract<CalledOf<Rows>, { path: Row['path'] }>
  >;
};

/** Not those that nobody but a manager reaches, nor servers in sandboxes, whose answers are their own. */
type CalledOf<Rows extends Routes> = Exclude<
  Rows[keyof Rows],
  { access: 'socket' } | { path: `${string}/ports/${string}` }
>;

/** A path with its parameters in braces. */
type DocumentPath<Path extends string> = Path extends `${infer Head}/:${infer Rest}`
  ? Rest extends `${infer Name}/${infer Tail}`
    ? `${Head}/{${Name}}${DocumentPath<`/${Tail}`>}`
    : `${Head}/{${Rest}}`
  : Path;

type MethodsOf<Rows extends Route> = {
  [Row in Rows as Lowercase<MethodOf<Row['method']>>]: {
    parameters: PathOf<Row['path']> & QueryOf<Row>;
    responses: { [Status in StatusOf<Row>]: ContentOf<Row> };
  } & BodyOf<Row>;
};

type MethodOf<Given> = Extract<
  Method,
  Given extends string ? Given : Given extends readonly unknown[] ? Given[number] : never
>;

type PathOf<Path extends string> = keyof PathParameters<Path> extends never
  ? unknown
  : { path: PathParameters<Path> };

type QueryOf<Row> = Row extends { query: TObject<infer Fields> }
  ? keyof Fields extends never
    ? unknown
    : { query: QueryFor<Fields> }
  : unknown;

/** A query as its caller gives it: what has a default may be left out. */
type QueryFor<Fields extends TProperties, Values = Static<TObject<Fields>>> = Omit<
  Values,
  DefaultsIn<Fields>
> &
  Partial<Pick<Values, keyof Values & DefaultsIn<Fields>>>;

type DefaultsIn<Fields> = {
  [Name in keyof Fields]: Fields[Name] extends { default: unknown } ? Name : never;
}[keyof Fields];

type BodyOf<Row> = Row extends { body_media: infer Media extends string }
  ? { requestBody: { content: { [Each in Media]: unknown } } }
  : Row extends { body: infer Body extends TSchema }
    ? Row extends { is_body_optional: true }
      ? { requestBody?: JsonOf<Static<Body>> }
      : { requestBody: JsonOf<Static<Body>> }
    : unknown;

type StatusOf<Row> =
  | (Row extends { status: infer Status extends number } ? Status : 200)
  | (Row extends { also: infer Others } ? keyof Others & number : never);

type ContentOf<Row> = Row extends { media: infer Media extends string }
  ? {
      content: {
        [Each in Media]: Row extends { content: infer Content extends TSchema } ? Static<Content> : unknown;
      };
    }
  : Row extends { data: infer Data extends TSchema }
    ? JsonOf<{ success: true; data: Static<Data> }>
    : Record<never, never>;

interface JsonOf<Json> {
  content: { 'application/json': Json };
}
