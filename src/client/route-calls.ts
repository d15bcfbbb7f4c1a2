import type { AnswerOf, InitArguments, InitOf, PathOf, RawCall } from './routes.ts';

/** The routes of one document, typed: a call gives the `data` of its answer and throws a `SandboxdError` otherwise. */
export abstract class RouteCalls<Paths> {
  /** Calls a route; the answer is that of its document. */
  protected abstract call(method: string, path: string, init?: RawCall): Promise<unknown>;

  GET<Path extends PathOf<Paths, 'get'>>(path: Path, ...init: InitArguments<InitOf<Paths, Path, 'get'>>) {
    return this.#call<Path, 'get'>('GET', path, init);
  }

  HEAD<Path extends PathOf<Paths, 'head'>>(path: Path, ...init: InitArguments<InitOf<Paths, Path, 'head'>>) {
    return this.#call<Path, 'head'>('HEAD', path, init);
  }

  POST<Path extends PathOf<Paths, 'post'>>(path: Path, ...init: InitArguments<InitOf<Paths, Path, 'post'>>) {
    return this.#call<Path, 'post'>('POST', path, init);
  }

  PUT<Path extends PathOf<Paths, 'put'>>(path: Path, ...init: InitArguments<InitOf<Paths, Path, 'put'>>) {
    return this.#call<Path, 'put'>('PUT', path, init);
  }

  DELETE<Path extends PathOf<Paths, 'delete'>>(
    path: Path,
    ...init: InitArguments<InitOf<Paths, Path, 'delete'>>
  ) {
    return this.#call<Path, 'delete'>('DELETE', path, init);
  }

  async #call<Path, Method>(method: string, path: string, [init]: [init?: RawCall]) {
    return (await this.call(method, path, init)) as AnswerOf<Paths, Path, Method>;
  }
}
