import { ApiError } from '../../../contract/errors.ts';
import type { SandboxState } from '../../../contract/sandbox.ts';
import { fileHandlers } from './file-routes.ts';
import type { FileService } from './file-service.ts';

/** The slice of the daemon that the file routes use. */
export interface FileContext {
  readonly state: SandboxState | 'starting';
  /** Loaded with the first request for files. */
  files(): Promise<Pick<FileService, 'answer'>>;
}

/**
 * The handlers of file operations, which are answered in a process of the account that the request acts as. Those that
 * change files throw `conflict` while the sandbox is paused. Contract section 4, "Files".
 */
export function forwardedFileHandlers(daemon: FileContext): ReturnType<typeof fileHandlers> {
  return fileHandlers(async (route, exchange) => {
    if (route.changes_files) checkWritable(daemon);
    const files = await daemon.files();
    await files.answer(route, exchange);
  });
}

function checkWritable({ state }: FileContext): void {
  if (state === 'paused') throw new ApiError('conflict', 'The sandbox is paused.');
  if (state === 'stopping') throw new ApiError('shutting_down');
}
