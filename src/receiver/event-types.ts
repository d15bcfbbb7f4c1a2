// Made from the OpenAPI schemas by `npm run published`. Do not edit.

export interface components {
    schemas: {
        /** SandboxReadyEvent */
        "sandbox.ready": {
            event_id: string;
            /** @constant */
            event_type: "sandbox.ready";
            /** Format: date-time */
            timestamp: string;
            sandbox_id: string;
            team_id: string;
            sequence: number;
            /** SandboxReadyPayload */
            payload: {
                http_port: number;
                version: string;
                watch_dir: string | null;
            };
        };
        /** SandboxPausedEvent */
        "sandbox.paused": {
            event_id: string;
            /** @constant */
            event_type: "sandbox.paused";
            /** Format: date-time */
            timestamp: string;
            sandbox_id: string;
            team_id: string;
            sequence: number;
            /** SandboxPausedPayload */
            payload: {
                reason: string | null;
                /** ResourceUsage */
                resource_usage: {
                    cpu_ms: number;
                    memory_bytes: number;
                    processes: number;
                };
            };
        };
        /** SandboxResumedEvent */
        "sandbox.resumed": {
            event_id: string;
            /** @constant */
            event_type: "sandbox.resumed";
            /** Format: date-time */
            timestamp: string;
            sandbox_id: string;
            team_id: string;
            sequence: number;
            /** SandboxResumedPayload */
            payload: {
                reason: string | null;
                paused_ms: number;
            };
        };
        /** SandboxKilledEvent */
        "sandbox.killed": {
            event_id: string;
            /** @constant */
            event_type: "sandbox.killed";
            /** Format: date-time */
            timestamp: string;
            sandbox_id: string;
            team_id: string;
            sequence: number;
            /** SandboxKilledPayload */
            payload: {
                /** @enum {unknown} */
                reason: "signal" | "main_process_exited" | "api";
                signal: string | null;
                uptime_ms: number;
            };
        };
        /** SandboxDeletedEvent */
        "sandbox.deleted": {
            event_id: string;
            /** @constant */
            event_type: "sandbox.deleted";
            /** Format: date-time */
            timestamp: string;
            sandbox_id: string;
            team_id: string;
            /** SandboxDeletedPayload */
            payload: {
                /** @enum {unknown} */
                reason: "api" | "ttl_expired" | "runtime_lost";
                actor: string | null;
            };
        };
        /** ProcessStartedEvent */
        "process.started": {
            event_id: string;
            /** @constant */
            event_type: "process.started";
            /** Format: date-time */
            timestamp: string;
            sandbox_id: string;
            team_id: string;
            sequence: number;
            /** ProcessStartedPayload */
            payload: {
                process_id: string;
                pid: number;
                command: string[];
                cwd: string;
                name: string | null;
                restart_count: number;
            };
        };
        /** ProcessExitedEvent */
        "process.exited": {
            event_id: string;
            /** @constant */
            event_type: "process.exited";
            /** Format: date-time */
            timestamp: string;
            sandbox_id: string;
            team_id: string;
            sequence: number;
            /** ProcessExitedPayload */
            payload: {
                process_id: string;
                pid: number;
                exit_code: number | null;
                signal: string | null;
                duration_ms: number;
                timed_out: boolean;
                stdout_preview: string;
                stderr_preview: string;
                restart_count: number;
                /** @constant */
                reason?: "unknown";
            };
        };
        /** ProcessCrashedEvent */
        "process.crashed": {
            event_id: string;
            /** @constant */
            event_type: "process.crashed";
            /** Format: date-time */
            timestamp: string;
            sandbox_id: string;
            team_id: string;
            sequence: number;
            /** ProcessCrashedPayload */
            payload: {
                process_id: string;
                pid: number;
                exit_code: number | null;
                signal: string | null;
                duration_ms: number;
                timed_out: boolean;
                stdout_preview: string;
                stderr_preview: string;
                restart_count: number;
                /** @enum {unknown} */
                reason: "signal" | "oom";
                core_dumped: boolean;
            };
        };
        /** FileModifiedEvent */
        "file.modified": {
            event_id: string;
            /** @constant */
            event_type: "file.modified";
            /** Format: date-time */
            timestamp: string;
            sandbox_id: string;
            team_id: string;
            sequence: number;
            /** FileModifiedPayload */
            payload: {
                /** @enum {unknown} */
                event_type: "create" | "write" | "remove" | "rename" | "chmod";
                path: string;
                path_base64?: string;
                old_path?: string;
                old_path_base64?: string;
                is_directory: boolean;
            };
        };
        /** AgentEvent */
        "agent.event": {
            event_id: string;
            /** @constant */
            event_type: "agent.event";
            /** Format: date-time */
            timestamp: string;
            sandbox_id: string;
            team_id: string;
            sequence: number;
            /** AgentEventPayload */
            payload: {
                [key: string]: unknown;
            };
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
