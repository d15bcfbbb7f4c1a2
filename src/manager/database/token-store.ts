import { createHash } from 'node:crypto';
import { timestamp } from '../../base/clock.ts';
import { kernelRandom } from '../../base/entropy.ts';
import { newId } from '../../base/ids.ts';
import type { Caller, Scope } from '../../contract/tokens.ts';
import type { Queries } from './database.ts';
import type { DatabaseClock } from './database-clock-store.ts';

const PREFIX = 'smt_';
const RANDOM_BYTES = 32;
/** Tokens that one query asks for. */
const PAGE = 500;

/** A token as listed, without the token itself. Times are RFC 3339 UTC with milliseconds, or null. */
export interface TokenView {
  token_id: string;
  team_id: string;
  scopes: Scope[];
  internal: boolean;
  created_at: string;
  revoked_at: string | null;
}

/** Bearer tokens, of which only the SHA-256 is stored. Source: contract section 7, "Bearer tokens". */
export class TokenStore {
  readonly #db: Queries;
  readonly #clock: DatabaseClock;

  constructor(db: Queries, clock: DatabaseClock) {
    this.#db = db;
    this.#clock = clock;
  }

  /** Creates a token and returns it: `smt_` and 43 characters of base64url. It cannot be read again. */
  async create(team_id: string, scopes: readonly Scope[], is_internal: boolean): Promise<string> {
    const token = PREFIX + kernelRandom(RANDOM_BYTES).toString('base64url');
    const now_ms = this.#clock.wallMs();
    await this.#db
      .insertInto('tokens')
      .values({
        token_id: newId('tok_', now_ms),
        team_id,
        scopes: JSON.stringify([...new Set(scopes)]),
        is_internal: is_internal ? 1 : 0,
        token_hash: hash(token),
        created_at_ms: now_ms,
        revoked_at_ms: null,
      })
      .execute();
    return token;
  }

  /** Whether no token was ever created. */
  async isEmpty(): Promise<boolean> {
    return (await this.#db.selectFrom('tokens').select('token_id').limit(1).executeTakeFirst()) === undefined;
  }

  /** Every token, oldest first. */
  async list(): Promise<TokenView[]> {
    const rows = await this.#db.selectFrom('tokens').selectAll().orderBy('token_id').execute();
    return rows.map((row) => ({
      token_id: row.token_id,
      team_id: row.team_id,
      scopes: JSON.parse(row.scopes),
      internal: row.is_internal === 1,
      created_at: timestamp(row.created_at_ms),
      revoked_at: row.revoked_at_ms === null ? null : timestamp(row.revoked_at_ms),
    }));
  }

  /** Revokes a token; false if it does not exist. A token that is already revoked keeps its time. */
  async revoke(token_id: string): Promise<boolean> {
    const found = await this.#db
      .selectFrom('tokens')
      .select('token_id')
      .where('token_id', '=', token_id)
      .executeTakeFirst();
    await this.#db
      .updateTable('tokens')
      .set({ revoked_at_ms: this.#clock.wallMs() })
      .where('token_id', '=', token_id)
      .where('revoked_at_ms', 'is', null)
      .execute();
    return found !== undefined;
  }

  /** The scopes of those of the tokens, given by id, that are valid. */
  async scopes(token_ids: readonly string[]): Promise<Map<string, Scope[]>> {
    const found = new Map<string, Scope[]>();
    for (let at = 0; at < token_ids.length; at += PAGE) {
      const rows = await this.#db
        .selectFrom('tokens')
        .select(['token_id', 'scopes'])
        .where('token_id', 'in', token_ids.slice(at, at + PAGE))
        .where('revoked_at_ms', 'is', null)
        .execute();
      for (const { token_id, scopes } of rows) found.set(token_id, JSON.parse(scopes));
    }
    return found;
  }

  /** The caller that a token identifies; null if the token is unknown or revoked. */
  async find(token: string): Promise<Caller | null> {
    const row = await this.#db
      .selectFrom('tokens')
      .select(['token_id', 'team_id', 'scopes', 'is_internal'])
      .where('token_hash', '=', hash(token))
      .where('revoked_at_ms', 'is', null)
      .executeTakeFirst();
    if (!row) return null;
    return {
      actor: row.token_id,
      team_id: row.team_id,
      scopes: JSON.parse(row.scopes),
      is_internal: row.is_internal === 1,
    };
  }
}

/** A token is 256 random bits: a plain hash reveals nothing and needs no salt. */
function hash(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
