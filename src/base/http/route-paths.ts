/** The methods that each path of an application allows. */
export class RoutePaths {
  readonly #routes: { url: string; pattern: RegExp; methods: Set<string> }[] = [];

  /** Adds a route. `url` is a fastify pattern: `:name` matches one segment, `*` the rest. */
  add(url: string, methods: string | string[]): void {
    let route = this.#routes.find((each) => each.url === url);
    if (!route) {
      route = { url, pattern: patternOf(url), methods: new Set() };
      this.#routes.push(route);
    }
    for (const method of [methods].flat()) route.methods.add(method);
  }

  /** The methods allowed for a request's target, which may have a query; empty if no such path exists. */
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

/** The path of a request's target, which may be an absolute URL; null if its encoding is invalid. */
function pathOf(target: string): string | null {
  const [path = ''] = target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#;]/);
  try {
    return decodeURI(path);
  } catch {
    return null;
  }
}
