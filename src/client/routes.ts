/** The types of calls, from the types of a document's routes. */

/** A body of bytes. A stream cannot be sent twice: such a call is never repeated. */
export type RawBody = string | Uint8Array<ArrayBuffer> | ArrayBuffer | Blob | ReadableStream<Uint8Array>;

/** What every call takes. */
export interface CallOptions {
  /** Further headers, such as `If-Match`. */
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** How long the server may say nothing before the call fails as `unreachable`, in ms; 0, the default, is forever. */
  timeout_ms?: number;
  /** False: the call is not repeated. */
  retry?: boolean;
}

/** A call of any route, with nothing checked by the compiler. */
export interface RawCall extends CallOptions {
  path?: Record<string, string>;
  query?: Record<string, unknown> | undefined;
  body?: unknown;
}

/** The paths of a document that have the method. */
export type PathOf<Paths, Method extends string> = {
  [Path in keyof Paths]: Method extends keyof Paths[Path] ? Path : never;
}[keyof Paths] &
  string;

type OperationAt<Paths, Path, Method> = Path extends keyof Paths
  ? Method extends keyof Paths[Path]
    ? Paths[Path][Method]
    : never
  : never;

type ParameterOf<Operation, Kind extends string> = Operation extends {
  parameters: { [Each in Kind]?: infer Values };
}
  ? Values
  : never;

/** A member that is there if the document has it, and may be left out where nothing in it is required. */
type Member<Name extends string, Value> = [Value] extends [never]
  ? unknown
  : Record<never, never> extends Value
    ? { [Each in Name]?: Value }
    : { [Each in Name]: Value };

type BodyMember<Operation> = Operation extends { requestBody: { content: infer Content } }
  ? { body: BodyOf<Content> }
  : Operation extends { requestBody?: { content: infer Content } }
    ? { body?: BodyOf<Content> }
    : unknown;

type BodyOf<Content> = Content extends { 'application/json': infer Json } ? Json : RawBody;

/** What the call of a route takes: `path` and `query` parameters, `body`, and `CallOptions`. */
export type InitOf<Paths, Path, Method> = CallOptions &
  Member<'path', ParameterOf<OperationAt<Paths, Path, Method>, 'path'>> &
  Member<'query', NonNullable<ParameterOf<OperationAt<Paths, Path, Method>, 'query'>>> &
  BodyMember<OperationAt<Paths, Path, Method>>;

/** The last parameter of a call, which may be left out where nothing in it is required. */
export type InitArguments<Init> = Record<never, never> extends Init ? [init?: Init] : [init: Init];

type SuccessOf<Operation> = Operation extends { responses: infer Responses }
  ? Responses[keyof Responses & (200 | 201 | 202 | 204)]
  : never;

type DataOf<Answer> = Answer extends { content: infer Content }
  ? Content extends { 'application/json': infer Json }
    ? Json extends { data: infer Data }
      ? Data
      : Json
    : Response
  : undefined;

/**
 * What the call of a route gives: `data` of a JSON answer; the `Response` itself where it is of another type, or of a
 * HEAD; otherwise undefined.
 */
export type AnswerOf<Paths, Path, Method> = Method extends 'head'
  ? Response
  : DataOf<SuccessOf<OperationAt<Paths, Path, Method>>>;
