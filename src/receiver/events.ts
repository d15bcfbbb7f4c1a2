/** What `sandboxd/events` exports: for those who receive webhooks, in any JavaScript. Contract section 1. */
export { EVENT_TYPES } from '../contract/events.ts';
export type {
  EventPayloads,
  EventType,
  FileModified,
  FileOperation,
  ProcessCrashed,
  ProcessExited,
  ProcessStarted,
  ResourceUsage,
  WebhookEvent,
} from './event.ts';
export { EventError, parse, type RawBody } from './parse.ts';
export { type RequestHeaders, type VerifyOptions, verify } from './verify.ts';
