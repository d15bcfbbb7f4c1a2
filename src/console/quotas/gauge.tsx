import type { QuotaStatus } from '../../contract/quotas.ts';
import { limitOf, nameOf, quantityOf } from './quota-words.ts';

const WARN = 0.8;

/** A dimension as a bar with what is used and what is left; a rate has no level, only its limit. */
export function Gauge({ quota }: { quota: QuotaStatus }) {
  const { dimension, current, limit_value, remaining, unlimited, enforced } = quota;
  const is_level = current !== null && limit_value !== null && !unlimited;
  const share = is_level ? Math.min(1, limit_value === 0 ? 1 : current / limit_value) : 0;
  const tone = share >= 1 ? ' is-bad' : share >= WARN ? ' is-warn' : '';
  return (
    <div class="gauge">
      <div class="gauge-line">
        <span>
          {nameOf(dimension)}
          {!enforced && <span class="muted"> (not enforced here)</span>}
        </span>
        <span class="number">
          {is_level ? (
            <>
              <strong>{quantityOf(quota, current)}</strong> of {limitOf(quota)}
            </>
          ) : (
            <span class="muted">{limitOf(quota)}</span>
          )}
        </span>
      </div>
      {is_level && (
        <>
          <div
            class={`bar${tone}`}
            role="meter"
            aria-label={nameOf(dimension)}
            aria-valuemin={0}
            aria-valuemax={limit_value}
            aria-valuenow={Math.min(current, limit_value)}
            aria-valuetext={`${current} of ${limit_value}`}
          >
            <span style={{ width: `${share * 100}%` }} />
          </div>
          {remaining !== null && <span class="muted number">{quantityOf(quota, remaining)} left</span>}
        </>
      )}
    </div>
  );
}
