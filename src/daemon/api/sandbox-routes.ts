import type { Socket } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { Static } from 'typebox';
import type { Log } from '../../base/log.ts';
import { VERSION } from '../../base/version.ts';
import { ApiError, FieldError, invalidField, OptionError, StartError } from '../../contract/errors.ts';
import { InitBody, InitWebhook, type SandboxState, type SandboxView } from '../../contract/sandbox.ts';
import { FEATURES } from '../../contract/versions.ts';
import { recordKey } from '../../outbox/sqlite/rows/record-mac.ts';
import { parseCidr } from '../../webhook/address.ts';
import { AddressGuard } from '../../webhook/address-guard.ts';
import { type DaemonConfig, identifier, watchDir, webhookUrl } from '../config.ts';
import type { Initialisation } from '../core.ts';
import type { Environment } from '../environment.ts';
import type { DaemonHandlers } from './handlers.ts';

/** The slice of the daemon that the sandbox routes use. */
export interface SandboxContext {
  readonly config: Pick<DaemonConfig, 'await_init'>;
  readonly log: Log;
  readonly environment: Pick<Environment, 'change'>;
  readonly state: SandboxState | 'starting';
  view(): Promise<SandboxView>;
  pause(reason: string | null, flush_ms?: number, memory?: boolean): Promise<boolean>;
  resume(reason: string | null, memory?: boolean): Promise<boolean>;
  initialise(given: Initialisation, env: Record<string, string>): Promise<void>;
  isControl(socket: Socket): boolean;
  forgetToken(): void;
}

/** The init body's field for each option that an error may name. */
const FIELDS: Record<string, string> = { '--webhook-url': 'webhook.url', '--watch-dir': 'webhook.watch_dir' };

/** The handlers of state, pause, resume, init and environment of the sandbox. Contract section 4, rows `/sandbox…`. */
export function ownSandboxHandlers(daemon: SandboxContext) {
  let initialised: { body: unknown; done: Promise<void> } | null = null;
  // It has started by the time that any of these has been carried out.
  const state = () => daemon.state as SandboxState;
  return {
    async getSandbox() {
      return daemon.view();
    },

    async pauseSandbox({ body: { reason = null, memory, flush_ms } = {} }) {
      const keeps_memory = await daemon.pause(reason, flush_ms, memory);
      return { state: state(), memory: keeps_memory };
    },

    async resumeSandbox({ body: { reason = null, memory } = {} }) {
      const keeps_memory = await daemon.resume(reason, memory);
      return { state: state(), memory: keeps_memory };
    },

    async setEnvironment({ body: { env } }) {
      return { names: daemon.environment.change(env) };
    },

    async initSandbox({ body, request }) {
      if (!daemon.config.await_init) {
        throw new ApiError('conflict', 'The sandbox was not started with --await-init.');
      }
      const is_control = daemon.isControl(request.raw.socket);
      const { record_key, webhook } = body;
      if (!is_control && (record_key !== undefined || webhook?.egress === 'manager')) {
        const field = record_key === undefined ? 'webhook.egress' : 'record_key';
        throw invalidField(field, 'is accepted only on the control socket');
      }
      if (initialised && !isDeepStrictEqual(initialised.body, body)) {
        throw new ApiError('conflict', 'The sandbox has already been initialised with a different body.');
      }
      if (!initialised) {
        const unknown = unknownFields(body);
        if (unknown.length > 0)
          daemon.log.warn({ fields: unknown }, 'fields of the init are not known and ignored');
        initialised = { body, done: initialise(daemon, body, is_control) };
        initialised.done.catch(() => {
          initialised = null;
        });
      }
      await initialised.done;
      return { state: state(), version: VERSION, features: [...FEATURES] };
    },
  } satisfies Partial<DaemonHandlers>;
}

/** The names that a newer manager gives and this version does not know. */
function unknownFields(body: Static<typeof InitBody>): string[] {
  const beyond = (given: object, known: object) => Object.keys(given).filter((name) => !(name in known));
  return [
    ...beyond(body, InitBody.properties),
    ...beyond(body.webhook ?? {}, InitWebhook.properties).map((name) => `webhook.${name}`),
  ];
}

async function initialise(
  daemon: SandboxContext,
  body: Static<typeof InitBody>,
  is_control: boolean,
): Promise<void> {
  const { webhook, env } = body;
  const given = asField(() => ({
    sandbox_id: identifier(body.sandbox_id, 'sandbox_id'),
    team_id: identifier(body.team_id, 'team_id'),
    webhook_url: webhook ? webhookUrl(webhook.url, 'webhook.url') : null,
    webhook_secret: webhook?.secret ?? '',
    webhook_guard: webhook?.allow_cidrs ? guardOf(webhook.allow_cidrs) : null,
    webhook_egress: webhook?.egress ?? 'direct',
    webhook_events: webhook?.events ?? null,
    webhook_retry: webhook?.retry ?? 'transient',
    watch_dir: webhook?.watch_dir ? watchDir(webhook.watch_dir, 'webhook.watch_dir') : null,
    watch_ignore: webhook?.watch_ignore ?? [],
  }));
  const { record_key = null } = body;
  if (record_key !== null && !recordKey(record_key)) {
    throw invalidField('record_key', 'must be 64 lowercase hex digits');
  }
  // Must happen before the first process that could read the token.
  if (is_control) daemon.forgetToken();
  try {
    await daemon.initialise({ ...given, record_key }, env ?? {});
  } catch (error) {
    throw error instanceof StartError ? asAnswer(error) : error;
  }
}

function guardOf(ranges: string[]): AddressGuard {
  return new AddressGuard(
    ranges.map((range) => {
      const cidr = parseCidr(range);
      if (cidr === null) throw invalidField('webhook.allow_cidrs', 'must be address ranges like 10.0.0.0/8');
      return cidr;
    }),
  );
}

/** Turns the refusal of a start into an answer that names the init body's field. */
function asAnswer(error: StartError): ApiError {
  const field = error instanceof OptionError ? FIELDS[error.field] : undefined;
  if (field === undefined) return new ApiError('invalid_request', error.message);
  return invalidField(field, (error as OptionError).problem);
}

/** Runs a check of the command line; turns its error into an answer that names the field. */
function asField<Value>(check: () => Value): Value {
  try {
    return check();
  } catch (error) {
    throw error instanceof OptionError ? new FieldError(error) : error;
  }
}
