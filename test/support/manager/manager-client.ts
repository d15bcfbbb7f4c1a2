/** What came back of a request. */
export interface Answer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they like.
  data: any;
  error: { code: string; message: string; details?: { field?: string } } | undefined;
}

/** Calls the API with one token. */
export class Client {
  readonly token: string;
  readonly #url: () => string;

  constructor(url: () => string, token: string) {
    this.#url = url;
    this.token = token;
  }

  get url(): string {
    return this.#url();
  }

  async call(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Answer> {
    const response = await fetch(this.#url() + path, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const parsed = text.startsWith('{') ? JSON.parse(text) : {};
    return { status: response.status, headers: response.headers, data: parsed.data, error: parsed.error };
  }

  get(path: string): Promise<Answer> {
    return this.call('GET', path);
  }

  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer> {
    return this.call('POST', path, body, headers);
  }

  /** Claims a sandbox that must be given. */
  async claim(config: object = {}): Promise<string> {
    const { status, data, error } = await this.post('/api/v1/sandboxes', { config });
    if (status !== 201) throw new Error(`the claim was answered ${status} ${error?.message}`);
    return data.sandbox_id;
  }
}
