/** One request as it is stored and sent: the headers that never change, and the exact body. */
export interface SignedRequest {
  url: string;
  headers: Record<string, string>;
  body: string;
}
