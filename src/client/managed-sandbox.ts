/// <reference lib="esnext.disposable" preserve="true" />
import { SandboxdError } from './error.ts';
import type { HttpClient } from './http-client.ts';
import type { paths } from './openapi/manager-api.ts';
import type { CallOptions, InitOf } from './routes.ts';
import { Sandbox } from './sandbox.ts';

const PATH = '/api/v1/sandboxes/{sandbox_id}';

type Change<Verb extends 'pause' | 'resume'> = NonNullable<
  InitOf<paths, `${typeof PATH}/${Verb}`, 'post'>['body']
>;

/** A sandbox at its manager, which can also pause, resume and delete it. */
export class ManagedSandbox extends Sandbox {
  /** Its id, such as `sbx_019a2b3c-4d5e-7f60-8123-000000000001`. */
  readonly id: string;
  readonly #client: HttpClient<paths>;

  constructor(client: HttpClient<unknown>, id: string) {
    super(client, id);
    this.id = id;
    this.#client = client as HttpClient<paths>;
  }

  /** Pauses it: it takes no memory and no quota of active sandboxes. Contract section 7, POST `/sandboxes/{id}/pause`. */
  pause({ memory, ...options }: CallOptions & Change<'pause'> = {}) {
    return this.#client.POST(`${PATH}/pause`, {
      ...options,
      path: { sandbox_id: this.id },
      body: { memory },
    });
  }

  /** Resumes it, paused as it is. Contract section 7, POST `/sandboxes/{id}/resume`. */
  resume({ memory, ...options }: CallOptions & Change<'resume'> = {}) {
    return this.#client.POST(`${PATH}/resume`, {
      ...options,
      path: { sandbox_id: this.id },
      body: { memory },
    });
  }

  /** Deletes it with everything in it; one that is deleted already is no error. Contract section 7, DELETE `/sandboxes/{id}`. */
  async delete(options: CallOptions = {}): Promise<void> {
    try {
      await this.#client.DELETE(PATH, { ...options, path: { sandbox_id: this.id } });
    } catch (error) {
      if (!isDeleted(error)) throw error;
    }
  }
}

/**
 * A sandbox of one's own claim. At the end of the block of its `await using` it is deleted: that was asked for by `using`,
 * and a sandbox that nobody holds any more would count towards the team's quotas until it expires.
 */
export class ClaimedSandbox extends ManagedSandbox {
  async [Symbol.asyncDispose](): Promise<void> {
    await this.delete();
  }
}

/** Whether a call found a sandbox that was deleted before, such as by its own first attempt. */
function isDeleted(error: unknown): boolean {
  if (!(error instanceof SandboxdError) || error.code !== 'not_found') return false;
  return (error.details as { deleted_at?: unknown } | null | undefined)?.deleted_at !== undefined;
}
