import { EVENT_TYPES } from '../../contract/events.ts';
import { Check, Field, Select } from '../parts/field.tsx';
import type { ClaimForm, Faults } from './claim-form.ts';

interface PartProps {
  form: ClaimForm;
  set(change: Partial<ClaimForm>): void;
  faults: Faults;
}

/** Its size, its labels and its variables. */
export function Basics({ form, set, faults }: PartProps) {
  const { template, memory, cpu, disk, metadata, env_vars } = form;
  return (
    <>
      <div class="fields">
        <Field
          label="Template"
          value={template}
          placeholder="default"
          wrong={faults.template}
          is_first
          onInput={(value) => set({ template: value })}
        />
        <Field
          label="Memory"
          value={memory}
          placeholder="512Mi"
          wrong={faults.memory}
          onInput={(value) => set({ memory: value })}
        />
        <Field
          label="Cores"
          value={cpu}
          placeholder="0.1"
          wrong={faults.cpu}
          onInput={(value) => set({ cpu: value })}
        />
        <Field
          label="Disk"
          value={disk}
          placeholder="by its memory"
          wrong={faults.disk}
          onInput={(value) => set({ disk: value })}
        />
      </div>
      <div class="fields">
        <Field
          label="Metadata"
          rows={3}
          value={metadata}
          placeholder={'branch:main\nowner:me'}
          wrong={faults.metadata}
          hint="a pair key:text on each line"
          onInput={(value) => set({ metadata: value })}
        />
        <Field
          label="Environment of its processes"
          rows={3}
          value={env_vars}
          placeholder={'CI=1\nLANG=C.UTF-8'}
          wrong={faults.env_vars}
          hint="NAME=value on each line; values are never shown again"
          onInput={(value) => set({ env_vars: value })}
        />
      </div>
    </>
  );
}

/** When it is paused and deleted. */
export function Lifetime({ form, set, faults }: PartProps) {
  const { ttl, hard_ttl, idle_ttl, auto_resume } = form;
  return (
    <>
      <div class="fields">
        <Field
          label="Pause after"
          value={ttl}
          placeholder="never"
          wrong={faults.ttl}
          hint="like 30m, 2h"
          onInput={(value) => set({ ttl: value })}
        />
        <Field
          label="Pause when unused for"
          value={idle_ttl}
          placeholder="never"
          wrong={faults.idle_ttl}
          hint="like 10m"
          onInput={(value) => set({ idle_ttl: value })}
        />
        <Field
          label="Delete after"
          value={hard_ttl}
          placeholder="never"
          wrong={faults.hard_ttl}
          hint="like 7d"
          onInput={(value) => set({ hard_ttl: value })}
        />
      </div>
      <Check
        label="Resume it with the next call while it is paused"
        checked={auto_resume}
        onChange={(value) => set({ auto_resume: value })}
      />
    </>
  );
}

/** Where its events go, and which. */
export function Webhook({ form, set, faults }: PartProps) {
  const { webhook_url, webhook_secret, watch_dir, watch_ignore, events, retries_any } = form;
  const toggle = (type: string, is_sent: boolean) =>
    set({ events: EVENT_TYPES.filter((each) => (each === type ? is_sent : events.includes(each))) });
  return (
    <>
      <div class="fields">
        <Field
          label="Webhook URL"
          type="url"
          value={webhook_url}
          placeholder="none"
          wrong={faults.webhook_url}
          onInput={(value) => set({ webhook_url: value })}
        />
        <Field
          label="Signing secret"
          wrong={faults.webhook_secret}
          type="password"
          value={webhook_secret}
          hint="never shown again"
          onInput={(value) => set({ webhook_secret: value })}
        />
      </div>
      {webhook_url.trim() !== '' && (
        <>
          <div class="fields">
            <Field
              label="Watched directory"
              value={watch_dir}
              placeholder="none"
              wrong={faults.watch_dir}
              onInput={(value) => set({ watch_dir: value })}
            />
            <Field
              label="Not watched"
              rows={2}
              value={watch_ignore}
              wrong={faults.watch_ignore}
              placeholder="**/node_modules"
              hint="a glob on each line"
              onInput={(value) => set({ watch_ignore: value })}
            />
          </div>
          <fieldset class="plain">
            <legend class="legend">Kinds that are sent</legend>
            <div class="checks">
              {EVENT_TYPES.map((type) => (
                <Check
                  key={type}
                  label={type}
                  checked={events.includes(type)}
                  onChange={(value) => toggle(type, value)}
                />
              ))}
            </div>
            {faults.events && <span class="wrong">{faults.events}</span>}
          </fieldset>
          <Check
            label="Try again whatever the webhook refuses, except with 410"
            checked={retries_any}
            onChange={(value) => set({ retries_any: value })}
          />
        </>
      )}
    </>
  );
}

/** Its network, with limits of its own. */
export function Network({ form, set, faults }: PartProps) {
  const { network, egress, ingress, burst } = form;
  return (
    <div class="fields">
      <Select
        label="Network"
        value={network}
        options={[['', 'default (allow-all)'], 'allow-all', 'block-all']}
        onChange={(value) => set({ network: value })}
      />
      <Field
        label="Egress, bytes per second"
        value={egress}
        placeholder="default"
        wrong={faults.egress}
        onInput={(value) => set({ egress: value })}
      />
      <Field
        label="Ingress, bytes per second"
        value={ingress}
        placeholder="default"
        wrong={faults.ingress}
        onInput={(value) => set({ ingress: value })}
      />
      <Field
        label="Burst, bytes"
        value={burst}
        placeholder="default"
        wrong={faults.burst}
        onInput={(value) => set({ burst: value })}
      />
    </div>
  );
}
