import { systemClock } from '../base/clock.ts';
import { StartError } from '../contract/errors.ts';
import { isTeamId, TEAM_ID_SHAPE } from '../contract/ids.ts';
import { SCOPES, type Scope } from '../contract/tokens.ts';
import { DatabaseClock } from './database/database-clock-store.ts';
import { TokenStore, type TokenView } from './database/token-store.ts';
import { withDatabase } from './ownership/with-database.ts';

/** The commands `sandbox-manager token …`, on the server's database. Each throws StartError for invalid arguments. */
export const tokenCommand = {
  /** Creates a token and returns it; it cannot be read again. */
  async create(
    database: string,
    { team, scopes, internal }: { team: string; scopes: string[]; internal: boolean },
  ): Promise<string> {
    if (!isTeamId(team)) throw new StartError(`--team must be ${TEAM_ID_SHAPE}`, 2);
    if (scopes.length === 0) throw new StartError(`--scope is required, one of ${SCOPES.join(', ')}`, 2);
    const checked = scopes.map(scope);
    return withTokens(database, (tokens) => tokens.create(team, checked, internal));
  },

  /** All tokens, without their secrets. */
  async list(database: string): Promise<TokenView[]> {
    return withTokens(database, (tokens) => tokens.list());
  },

  /** Revokes a token. */
  async revoke(database: string, token_id: string): Promise<void> {
    const is_known = await withTokens(database, (tokens) => tokens.revoke(token_id));
    if (!is_known) throw new StartError(`there is no token ${token_id}`, 1);
  },
};

function scope(text: string): Scope {
  const found = SCOPES.find((each) => each === text);
  if (!found) throw new StartError(`--scope ${text} is unknown; must be one of ${SCOPES.join(', ')}`, 2);
  return found;
}

async function withTokens<Result>(
  url: string,
  work: (tokens: TokenStore) => Promise<Result>,
): Promise<Result> {
  return withDatabase(url, async (database) =>
    work(new TokenStore(database.db, await DatabaseClock.open(database, systemClock))),
  );
}
