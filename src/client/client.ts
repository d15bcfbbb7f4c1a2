/** What `sandboxd/client` exports. Contract section 1. */
export { createDaemonClient, type DaemonClient } from './daemon-client.ts';
export { SandboxdError, type SandboxdErrorCode } from './error.ts';
export type { FileEntry, Files, Written } from './files.ts';
export type { ClientOptions } from './http-client.ts';
export type { ClaimedSandbox, ManagedSandbox } from './managed-sandbox.ts';
export {
  type Claim,
  createManagerClient,
  type FollowedEvent,
  type FollowOptions,
  type ManagerClient,
  type SandboxRecord,
  type TeamDelivery,
  type UsageWindow,
} from './manager-client.ts';
export type { paths as DaemonPaths } from './openapi/daemon-api.ts';
export type { paths as ManagerPaths } from './openapi/manager-api.ts';
export type { RetryPolicy } from './retry.ts';
export type { AnswerOf, CallOptions, InitOf, RawBody } from './routes.ts';
export type { RunOptions, RunResult } from './run.ts';
export type { Delivery, ListedProcess, Sandbox, StreamedEvent } from './sandbox.ts';
export type { AttachEvent, Attachment, AttachOptions } from './streams/attachment.ts';
export type { OutputGap, OutputPiece } from './streams/bytes.ts';
export type { OutputEvent, OutputOptions } from './streams/output.ts';
export type { Process } from './streams/process.ts';
export type { ReadOutputOptions, TakeOutput } from './streams/read-output.ts';
export type { Input } from './streams/send-input.ts';
