import type { paths } from '../openapi/daemon-api.ts';
import type { AnswerOf } from '../routes.ts';

/** A process as both programs show it. */
export type Process = AnswerOf<paths, '/api/v1/processes/{process_id}', 'get'>;
