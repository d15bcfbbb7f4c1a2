/** Which methods the paths of an application take. */
export class RoutePaths {
  readonly #routes: { url: string; pattern: RegExp; methods: Set<string> }[] = [];

  /** `url` as fastify spells it: `:name` is one segment, `*` is the rest. */
  add(url: string, methods: string | string[]): void {
    let route = this.#routes.find((each) => each.url === url);
    if (!route) {
      route = { url, pattern: patternOf(url), methods: new Set() };
      this.#routes.push(route);
    }
    for (const method of [methods].flat()) route.methods.add(method);
  }

  /** None where there is no such path. `target` is a request's, its query included. */
  methodsOf(target: string): string[] {
    const path = pathOf(target);
    const matching = this.#routes.filter(({ pattern }) => path !== null && pattern.test(path));
    return [...new Set(matching.flatMap(({ methods }) => [...methods]))];
  }
}

function patternOf(url: string): RegExp {
  const segments = url.split('/').map((segment) => {
    if (segment.startsWith(':')) return '[^/]+';
    return segment === '*' ? '.*' : segment.replaceAll(/[^\w-]/g, '\\$&');
  });
  return new RegExp(`^${segments.join('/')}$`);
}

/** The path of a request's target, which may be a whole URL; null where it is not well encoded. */
function pathOf(target: string): string | null {
  const [path = ''] = target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#;]/);
  try {
    return decodeURI(path);
  } catch {
    return null;
  }
}
