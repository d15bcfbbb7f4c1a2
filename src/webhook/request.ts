/** One POST request as it is stored and sent: the static headers and the exact body. */
export interface SignedRequest {
  url: string;
  headers: Record<string, string>;
  body: string | Buffer;
}
