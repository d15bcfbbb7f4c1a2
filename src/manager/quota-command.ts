import { integerOption } from '../base/options.ts';
import { OptionError, StartError } from '../contract/errors.ts';
import { isTeamId, TEAM_ID_SHAPE } from '../contract/ids.ts';
import type { PolicyStatus } from '../contract/quotas.ts';
import type { Dimension } from '../contract/words.ts';
import { withDatabase } from './ownership/with-database.ts';
import { asDimension, asPolicy } from './quotas/policy.ts';
import { quotaStatus, quotaStatuses } from './quotas/quota-status.ts';
import { QuotaStore } from './quotas/quota-store.ts';

/** The numbers of a policy as given on the command line. */
export interface PolicyTexts {
  limitValue?: string;
  intervalMs?: string;
  burstValue?: string;
}

/** The commands `sandbox-manager quota …`, on the server's database. Each throws StartError for invalid arguments. */
export const quotaCommand = {
  /** The quotas that apply to a team. */
  async list(database: string, team: string): Promise<PolicyStatus[]> {
    return withQuotas(database, team, (store) => quotaStatuses(store, team));
  },

  /** Overrides a team's policy; running replicas follow within 5 s. */
  async set(database: string, team: string, named: string, texts: PolicyTexts): Promise<PolicyStatus> {
    const dimension = checkedDimension(named);
    const given = {
      limit_value: asNumber(texts.limitValue),
      interval_ms: asNumber(texts.intervalMs),
      burst_value: asNumber(texts.burstValue),
    };
    const { value, fault } = asPolicy(dimension, given);
    if (fault) throw new OptionError({ ...fault, field: `--${fault.field.replaceAll('_', '-')}` });
    return withQuotas(database, team, async (store) => {
      await store.set(team, value);
      return quotaStatus(store, team, dimension);
    });
  },

  /** Removes a team's override. */
  async unset(database: string, team: string, named: string): Promise<PolicyStatus> {
    const dimension = checkedDimension(named);
    return withQuotas(database, team, async (store) => {
      await store.unset(team, dimension);
      return quotaStatus(store, team, dimension);
    });
  },
};

function checkedDimension(named: string): Dimension {
  const { value, fault } = asDimension(named);
  if (fault) throw new StartError(`${named}: the dimension ${fault.problem}`, 2);
  return value;
}

/** A number for digits; anything else is left for the policy's validation to refuse. */
function asNumber(text: string | undefined): unknown {
  return text === undefined ? text : (integerOption(0).parse(text) ?? text);
}

async function withQuotas<Result>(
  url: string,
  team: string,
  work: (store: QuotaStore) => Promise<Result>,
): Promise<Result> {
  if (!isTeamId(team)) throw new StartError(`--team must be ${TEAM_ID_SHAPE}`, 2);
  return withDatabase(url, (database) => work(new QuotaStore(database)));
}
