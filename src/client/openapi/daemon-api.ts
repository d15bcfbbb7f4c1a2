// Made from the OpenAPI document by `npm run client-types`. Do not edit.

export interface paths {
    "/api/v1/webhook/publish": {
        /** Publish an event */
        post: operations["publishEvent"];
    };
    "/api/v1/webhook/test": {
        /** Publish a test event and wait for its first attempt */
        post: operations["publishTestEvent"];
    };
    "/api/v1/webhook/deliveries": {
        /** List a sandbox's deliveries, newest first */
        get: operations["listDeliveries"];
    };
    "/api/v1/webhook/deliveries/{event_id}": {
        /** Get one delivery with its body and attempts */
        get: operations["getDelivery"];
    };
    "/api/v1/webhook/deliveries/{event_id}/replay": {
        /** Send a record again */
        post: operations["replayDelivery"];
    };
    "/api/v1/webhook/deliveries/replay": {
        /** Send all records in a state again */
        post: operations["replayDeliveries"];
    };
    "/api/v1/events/stream": {
        /** Follow a sandbox's records as they are committed */
        get: operations["streamEvents"];
    };
    "/api/v1/sandbox": {
        /** Get the state of the sandbox */
        get: operations["getSandbox"];
    };
    "/api/v1/sandbox/pause": {
        /** Pause the sandbox */
        post: operations["pauseSandbox"];
    };
    "/api/v1/sandbox/resume": {
        /** Resume the sandbox */
        post: operations["resumeSandbox"];
    };
    "/api/v1/sandbox/env": {
        /** Set environment variables for processes started later */
        put: operations["setEnvironment"];
    };
    "/api/v1/sandbox/init": {
        /** Give the sandbox its identity and webhook */
        post: operations["initSandbox"];
    };
    "/api/v1/processes": {
        /** List processes */
        get: operations["listProcesses"];
        /** Start a process */
        post: operations["startProcess"];
    };
    "/api/v1/processes/{process_id}": {
        /** Get one process */
        get: operations["getProcess"];
        /** End a process */
        delete: operations["endProcess"];
    };
    "/api/v1/processes/{process_id}/output": {
        /** Read a process's output */
        get: operations["readProcessOutput"];
    };
    "/api/v1/processes/{process_id}/attach": {
        /** Attach to a process over a WebSocket */
        get: operations["attachProcess"];
    };
    "/api/v1/processes/{process_id}/wait": {
        /** Wait until a process has ended or is ready */
        get: operations["waitForProcess"];
    };
    "/api/v1/processes/{process_id}/signal": {
        /** Send a signal to a process */
        post: operations["signalProcess"];
    };
    "/api/v1/processes/{process_id}/resize": {
        /** Resize a process's terminal */
        post: operations["resizeProcess"];
    };
    "/api/v1/processes/{process_id}/stdin": {
        /** Write to a process's stdin */
        post: operations["writeProcessStdin"];
    };
    "/api/v1/contexts": {
        /** List contexts */
        get: operations["listContexts"];
        /** Create a context: start a process */
        post: operations["createContext"];
    };
    "/api/v1/contexts/{context_id}": {
        /** Get one context with its output */
        get: operations["getContext"];
        /** End a context */
        delete: operations["endContext"];
    };
    "/api/v1/contexts/{context_id}/restart": {
        /** End a context and start it anew */
        post: operations["restartContext"];
    };
    "/api/v1/contexts/{context_id}/ws": {
        /** Attach to a context over a WebSocket */
        get: operations["attachContext"];
    };
    "/api/v1/contexts/{context_id}/input": {
        /** Write to a context */
        post: operations["writeContextInput"];
    };
    "/api/v1/contexts/{context_id}/exec": {
        /** Write to a context and wait until it has ended */
        post: operations["execInContext"];
    };
    "/api/v1/contexts/{context_id}/resize": {
        /** Resize a context's terminal */
        post: operations["resizeContext"];
    };
    "/api/v1/contexts/{context_id}/signal": {
        /** Send a signal to a context */
        post: operations["signalContext"];
    };
    "/api/v1/files": {
        /** Download a file */
        get: operations["downloadFile"];
        /** Write a file */
        put: operations["writeFile"];
        /** Write a file, or make a directory with mkdir=true */
        post: operations["createFile"];
        /** Remove a file or directory */
        delete: operations["removeFile"];
        /** Ask for the size and version of a file */
        head: operations["headFile"];
    };
    "/api/v1/files/stat": {
        /** Describe a path */
        get: operations["statFile"];
    };
    "/api/v1/files/list": {
        /** List a directory */
        get: operations["listFiles"];
    };
    "/api/v1/files/archive": {
        /** Download a directory as an archive */
        get: operations["downloadArchive"];
        /** Unpack an archive into a directory */
        put: operations["uploadArchive"];
    };
    "/api/v1/files/watch": {
        /** Watch directories over a WebSocket */
        get: operations["watchFiles"];
    };
    "/api/v1/files/move": {
        /** Move a file or directory */
        post: operations["moveFile"];
    };
    "/api/v1/files/copy": {
        /** Copy a file or directory */
        post: operations["copyFile"];
    };
    "/healthz": {
        /** Liveness */
        get: operations["getHealth"];
    };
    "/readyz": {
        /** Whether the program is ready, and what is degraded */
        get: operations["getReadiness"];
    };
    "/metrics": {
        /** Metrics in the Prometheus text format */
        get: operations["getMetrics"];
    };
    "/openapi.json": {
        /** This OpenAPI document */
        get: operations["getDocument"];
    };
}
export interface operations {
    publishEvent: {
        parameters: {
            header?: {
                /** @description a repeated key with the same payload returns the first answer */
                "Idempotency-Key"?: string;
                /** @description W3C Trace Context; the delivery carries it on. Ignored where it is not valid */
                traceparent?: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    payload: {
                        [key: string]: unknown;
                    };
                };
            };
        };
        responses: {
            202: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            event_id: string;
                            sequence: number;
                        };
                    };
                };
            };
        };
    };
    publishTestEvent: {
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            event_id: string;
                            /** @enum {unknown} */
                            event_type: "sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event";
                            sequence: number | null;
                            /** @enum {unknown} */
                            state: "pending" | "delivered" | "failed" | "expired" | "foreign";
                            /** Format: date-time */
                            created_at: string;
                            finished_at: string | null;
                            next_attempt_at: string | null;
                            attempt_count: number;
                            last_status: number | null;
                            last_error: ("dns" | "connect" | "tls" | "timeout" | "reset" | "protocol" | "blocked") | null;
                            last_error_detail: string | null;
                            body: string;
                            headers: {
                                [key: string]: string;
                            };
                            attempts: {
                                attempt: number;
                                /** Format: date-time */
                                started_at: string;
                                duration_ms: number;
                                status: number | null;
                                error: ("dns" | "connect" | "tls" | "timeout" | "reset" | "protocol" | "blocked") | null;
                                error_detail: string | null;
                                next_attempt_at: string | null;
                                response_body: string | null;
                            }[];
                        };
                    };
                };
            };
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                state?: "pending" | "delivered" | "failed" | "expired" | "foreign";
                event_type?: "sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event";
                limit?: number;
                cursor?: number;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            deliveries: {
                                event_id: string;
                                /** @enum {unknown} */
                                event_type: "sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event";
                                sequence: number | null;
                                /** @enum {unknown} */
                                state: "pending" | "delivered" | "failed" | "expired" | "foreign";
                                /** Format: date-time */
                                created_at: string;
                                finished_at: string | null;
                                next_attempt_at: string | null;
                                attempt_count: number;
                                last_status: number | null;
                                last_error: ("dns" | "connect" | "tls" | "timeout" | "reset" | "protocol" | "blocked") | null;
                                last_error_detail: string | null;
                            }[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
    };
    getDelivery: {
        parameters: {
            path: {
                /** @example evt_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                event_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            event_id: string;
                            /** @enum {unknown} */
                            event_type: "sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event";
                            sequence: number | null;
                            /** @enum {unknown} */
                            state: "pending" | "delivered" | "failed" | "expired" | "foreign";
                            /** Format: date-time */
                            created_at: string;
                            finished_at: string | null;
                            next_attempt_at: string | null;
                            attempt_count: number;
                            last_status: number | null;
                            last_error: ("dns" | "connect" | "tls" | "timeout" | "reset" | "protocol" | "blocked") | null;
                            last_error_detail: string | null;
                            body: string;
                            headers: {
                                [key: string]: string;
                            };
                            attempts: {
                                attempt: number;
                                /** Format: date-time */
                                started_at: string;
                                duration_ms: number;
                                status: number | null;
                                error: ("dns" | "connect" | "tls" | "timeout" | "reset" | "protocol" | "blocked") | null;
                                error_detail: string | null;
                                next_attempt_at: string | null;
                                response_body: string | null;
                            }[];
                        };
                    };
                };
            };
        };
    };
    replayDelivery: {
        parameters: {
            path: {
                /** @example evt_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                event_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            event_id: string;
                            /** @enum {unknown} */
                            event_type: "sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event";
                            sequence: number | null;
                            /** @enum {unknown} */
                            state: "pending" | "delivered" | "failed" | "expired" | "foreign";
                            /** Format: date-time */
                            created_at: string;
                            finished_at: string | null;
                            next_attempt_at: string | null;
                            attempt_count: number;
                            last_status: number | null;
                            last_error: ("dns" | "connect" | "tls" | "timeout" | "reset" | "protocol" | "blocked") | null;
                            last_error_detail: string | null;
                            body: string;
                            headers: {
                                [key: string]: string;
                            };
                            attempts: {
                                attempt: number;
                                /** Format: date-time */
                                started_at: string;
                                duration_ms: number;
                                status: number | null;
                                error: ("dns" | "connect" | "tls" | "timeout" | "reset" | "protocol" | "blocked") | null;
                                error_detail: string | null;
                                next_attempt_at: string | null;
                                response_body: string | null;
                            }[];
                        };
                    };
                };
            };
        };
    };
    replayDeliveries: {
        parameters: {
            query: {
                state: "failed" | "expired" | "delivered";
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            replayed: number;
                        };
                    };
                };
            };
        };
    };
    streamEvents: {
        parameters: {
            header?: {
                /** @description the id of the last event received */
                "Last-Event-ID"?: string;
            };
        };
        responses: {
            200: {
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    getSandbox: {
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            sandbox_id: string;
                            team_id: string;
                            /** @enum {unknown} */
                            state: "awaiting_init" | "running" | "paused" | "stopping";
                            version: string;
                            uptime_ms: number;
                            outbox: {
                                pending: number;
                                delivered: number;
                                failed: number;
                                expired: number;
                                foreign: number;
                                bytes: number;
                            };
                            endpoint: {
                                healthy: boolean;
                                next_probe_at: string | null;
                            } | null;
                            watcher: {
                                watch_dir: string;
                                /** @enum {unknown} */
                                state: "starting" | "watching" | "waiting" | "stopped";
                                directories_watched: number;
                                directories_compared: number;
                                directories_unreadable: number;
                                index_size: number;
                                queued: number;
                                events: number;
                                reconciles: {
                                    [key: string]: number;
                                };
                                degraded: string | null;
                            } | null;
                            resource_usage: {
                                cpu_ms: number;
                                memory_bytes: number;
                                processes: number;
                            };
                        };
                    };
                };
            };
        };
    };
    pauseSandbox: {
        requestBody?: {
            content: {
                "application/json": {
                    reason?: string | null;
                    flush_ms?: number;
                };
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @enum {unknown} */
                            state: "awaiting_init" | "running" | "paused" | "stopping";
                        };
                    };
                };
            };
        };
    };
    resumeSandbox: {
        requestBody?: {
            content: {
                "application/json": {
                    reason?: string | null;
                    flush_ms?: number;
                };
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @enum {unknown} */
                            state: "awaiting_init" | "running" | "paused" | "stopping";
                        };
                    };
                };
            };
        };
    };
    setEnvironment: {
        requestBody: {
            content: {
                "application/json": {
                    env: {
                        [key: string]: string | null;
                    };
                };
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            names: string[];
                        };
                    };
                };
            };
        };
    };
    initSandbox: {
        requestBody: {
            content: {
                "application/json": {
                    sandbox_id: string;
                    team_id: string;
                    webhook?: {
                        url: string;
                        secret?: string;
                        watch_dir?: string;
                        /** @description a list of at most 100 globs of 1 to 256 characters */
                        watch_ignore?: string[];
                        /** @description a list of at least one, none of them twice, of sandbox.ready, sandbox.paused, sandbox.resumed, sandbox.killed, sandbox.deleted, process.started, process.exited, process.crashed, file.modified, agent.event */
                        events?: ("sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event")[];
                        allow_cidrs?: string[];
                        /** @enum {unknown} */
                        egress?: "direct" | "manager";
                    };
                    env?: {
                        [key: string]: string;
                    };
                    record_key?: string;
                };
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @enum {unknown} */
                            state: "awaiting_init" | "running" | "paused" | "stopping";
                        };
                    };
                };
            };
        };
    };
    listProcesses: {
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            processes: {
                                process_id: string;
                                name: string | null;
                                pid: number;
                                /** @enum {unknown} */
                                state: "running" | "paused" | "exited" | "crashed" | "restarting";
                                command: string[];
                                cwd: string;
                                user: string | null;
                                exit_code: number | null;
                                signal: string | null;
                                timed_out: boolean;
                                /** Format: date-time */
                                started_at: string;
                                exited_at: string | null;
                                duration_ms: number | null;
                                restart_count: number;
                                ready: boolean | null;
                                resource_usage: {
                                    cpu_ms: number;
                                    memory_bytes: number;
                                    processes: number;
                                };
                            }[];
                        };
                    };
                };
            };
        };
    };
    startProcess: {
        parameters: {
            query?: {
                wait_ms?: number;
                lossless?: boolean;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    /** @description an array of strings without NUL, of which the first is the program */
                    command?: string[];
                    /** @description a non-empty string without NUL */
                    shell?: string;
                    /** @description 1 to 128 of A-Z a-z 0-9 _ - . : and not . or .. */
                    process_id?: string;
                    /** @description a non-empty string without NUL */
                    cwd?: string;
                    env?: {
                        [key: string]: string;
                    };
                    /** @description a string without NUL */
                    user?: string;
                    /** @description a string without NUL */
                    name?: string;
                    /** @enum {unknown} */
                    stdin?: "pipe" | "ignore";
                    timeout_ms?: number;
                    restart?: {
                        /** @enum {unknown} */
                        policy: "never" | "on-failure" | "always";
                        max_restarts?: number;
                        backoff_ms?: number;
                    };
                    pty?: {
                        cols: number;
                        rows: number;
                    };
                    /** @description exactly one of port and log */
                    ready?: {
                        port?: number;
                        log?: string;
                    };
                };
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            process_id: string;
                            name: string | null;
                            pid: number;
                            /** @enum {unknown} */
                            state: "running" | "paused" | "exited" | "crashed" | "restarting";
                            command: string[];
                            cwd: string;
                            user: string | null;
                            exit_code: number | null;
                            signal: string | null;
                            timed_out: boolean;
                            /** Format: date-time */
                            started_at: string;
                            exited_at: string | null;
                            duration_ms: number | null;
                            restart_count: number;
                            ready: boolean | null;
                            resource_usage: {
                                cpu_ms: number;
                                memory_bytes: number;
                                processes: number;
                            };
                            output?: {
                                stdout: string;
                                stderr: string;
                                stdout_truncated: boolean;
                                stderr_truncated: boolean;
                            };
                        };
                    };
                };
            };
            201: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            process_id: string;
                            name: string | null;
                            pid: number;
                            /** @enum {unknown} */
                            state: "running" | "paused" | "exited" | "crashed" | "restarting";
                            command: string[];
                            cwd: string;
                            user: string | null;
                            exit_code: number | null;
                            signal: string | null;
                            timed_out: boolean;
                            /** Format: date-time */
                            started_at: string;
                            exited_at: string | null;
                            duration_ms: number | null;
                            restart_count: number;
                            ready: boolean | null;
                            resource_usage: {
                                cpu_ms: number;
                                memory_bytes: number;
                                processes: number;
                            };
                            output?: {
                                stdout: string;
                                stderr: string;
                                stdout_truncated: boolean;
                                stderr_truncated: boolean;
                            };
                        };
                    };
                };
            };
        };
    };
    getProcess: {
        parameters: {
            path: {
                /** @example build */
                process_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            process_id: string;
                            name: string | null;
                            pid: number;
                            /** @enum {unknown} */
                            state: "running" | "paused" | "exited" | "crashed" | "restarting";
                            command: string[];
                            cwd: string;
                            user: string | null;
                            exit_code: number | null;
                            signal: string | null;
                            timed_out: boolean;
                            /** Format: date-time */
                            started_at: string;
                            exited_at: string | null;
                            duration_ms: number | null;
                            restart_count: number;
                            ready: boolean | null;
                            resource_usage: {
                                cpu_ms: number;
                                memory_bytes: number;
                                processes: number;
                            };
                        };
                    };
                };
            };
        };
    };
    endProcess: {
        parameters: {
            query?: {
                grace_ms?: number;
            };
            path: {
                /** @example build */
                process_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            process_id: string;
                            name: string | null;
                            pid: number;
                            /** @enum {unknown} */
                            state: "running" | "paused" | "exited" | "crashed" | "restarting";
                            command: string[];
                            cwd: string;
                            user: string | null;
                            exit_code: number | null;
                            signal: string | null;
                            timed_out: boolean;
                            /** Format: date-time */
                            started_at: string;
                            exited_at: string | null;
                            duration_ms: number | null;
                            restart_count: number;
                            ready: boolean | null;
                            resource_usage: {
                                cpu_ms: number;
                                memory_bytes: number;
                                processes: number;
                            };
                        };
                    };
                };
            };
        };
    };
    readProcessOutput: {
        parameters: {
            query?: {
                stream?: "stdout" | "stderr" | "all";
                offset?: number;
                tail_bytes?: number;
                tail_lines?: number;
                follow?: boolean;
                lossless?: boolean;
            };
            header?: {
                /** @description the id of the last event received */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @example build */
                process_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "text/event-stream": string;
                };
            };
        };
    };
    attachProcess: {
        parameters: {
            query?: {
                offset?: number;
                lossless?: boolean;
            };
            path: {
                /** @example build */
                process_id: string;
            };
        };
        responses: {
            101: {
            };
        };
    };
    waitForProcess: {
        parameters: {
            query?: {
                timeout_ms?: number;
                for?: "exit" | "ready";
            };
            path: {
                /** @example build */
                process_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            process_id: string;
                            name: string | null;
                            pid: number;
                            /** @enum {unknown} */
                            state: "running" | "paused" | "exited" | "crashed" | "restarting";
                            command: string[];
                            cwd: string;
                            user: string | null;
                            exit_code: number | null;
                            signal: string | null;
                            timed_out: boolean;
                            /** Format: date-time */
                            started_at: string;
                            exited_at: string | null;
                            duration_ms: number | null;
                            restart_count: number;
                            ready: boolean | null;
                            resource_usage: {
                                cpu_ms: number;
                                memory_bytes: number;
                                processes: number;
                            };
                        };
                    };
                };
            };
        };
    };
    signalProcess: {
        parameters: {
            path: {
                /** @example build */
                process_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    signal: string;
                    /** @enum {unknown} */
                    scope?: "group" | "leader";
                };
            };
        };
        responses: {
            204: {
            };
        };
    };
    resizeProcess: {
        parameters: {
            path: {
                /** @example build */
                process_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    cols: number;
                    rows: number;
                };
            };
        };
        responses: {
            204: {
            };
        };
    };
    writeProcessStdin: {
        parameters: {
            query?: {
                end?: boolean;
                offset?: number;
            };
            path: {
                /** @example build */
                process_id: string;
            };
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            204: {
            };
        };
    };
    listContexts: {
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            contexts: {
                                id: string;
                                /** @constant */
                                type: "cmd";
                                cwd: string;
                                running: boolean;
                                paused: boolean;
                                /** Format: date-time */
                                created_at: string;
                                exit_code?: number;
                                /** @enum {unknown} */
                                state?: "stopped" | "crashed";
                                output_raw?: string;
                                stdout?: string;
                                stderr?: string;
                            }[];
                        };
                    };
                };
            };
        };
    };
    createContext: {
        requestBody: {
            content: {
                "application/json": {
                    /** @enum {unknown} */
                    type?: "cmd" | "repl";
                    cmd?: {
                        command: string[];
                    };
                    repl?: unknown;
                    wait_until_done?: boolean;
                    /** @description a string without NUL */
                    cwd?: string;
                    env_vars?: {
                        [key: string]: string;
                    };
                    pty_size?: {
                        cols: number;
                        rows: number;
                    };
                    idle_timeout_sec?: number;
                    ttl_sec?: number;
                };
            };
        };
        responses: {
            201: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            id: string;
                            /** @constant */
                            type: "cmd";
                            cwd: string;
                            running: boolean;
                            paused: boolean;
                            /** Format: date-time */
                            created_at: string;
                            exit_code?: number;
                            /** @enum {unknown} */
                            state?: "stopped" | "crashed";
                            output_raw?: string;
                            stdout?: string;
                            stderr?: string;
                        };
                    };
                };
            };
        };
    };
    getContext: {
        parameters: {
            path: {
                /** @example build */
                context_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            id: string;
                            /** @constant */
                            type: "cmd";
                            cwd: string;
                            running: boolean;
                            paused: boolean;
                            /** Format: date-time */
                            created_at: string;
                            exit_code?: number;
                            /** @enum {unknown} */
                            state?: "stopped" | "crashed";
                            output_raw?: string;
                            stdout?: string;
                            stderr?: string;
                        };
                    };
                };
            };
        };
    };
    endContext: {
        parameters: {
            path: {
                /** @example build */
                context_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            deleted: true;
                        };
                    };
                };
            };
        };
    };
    restartContext: {
        parameters: {
            path: {
                /** @example build */
                context_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            id: string;
                            /** @constant */
                            type: "cmd";
                            cwd: string;
                            running: boolean;
                            paused: boolean;
                            /** Format: date-time */
                            created_at: string;
                            exit_code?: number;
                            /** @enum {unknown} */
                            state?: "stopped" | "crashed";
                            output_raw?: string;
                            stdout?: string;
                            stderr?: string;
                        };
                    };
                };
            };
        };
    };
    attachContext: {
        parameters: {
            path: {
                /** @example build */
                context_id: string;
            };
        };
        responses: {
            101: {
            };
        };
    };
    writeContextInput: {
        parameters: {
            path: {
                /** @example build */
                context_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    data: string;
                };
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            written: true;
                        };
                    };
                };
            };
        };
    };
    execInContext: {
        parameters: {
            path: {
                /** @example build */
                context_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    data: string;
                };
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            output_raw: string;
                            stdout: string;
                            stderr: string;
                            exit_code?: number;
                            /** @enum {unknown} */
                            state?: "stopped" | "crashed";
                        };
                    };
                };
            };
        };
    };
    resizeContext: {
        parameters: {
            path: {
                /** @example build */
                context_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    cols: number;
                    rows: number;
                };
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            resized: true;
                        };
                    };
                };
            };
        };
    };
    signalContext: {
        parameters: {
            path: {
                /** @example build */
                context_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    signal: string;
                };
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            signaled: true;
                        };
                    };
                };
            };
        };
    };
    downloadFile: {
        parameters: {
            query?: {
                path?: string;
                path_base64?: string;
                user?: string;
            };
            header?: {
                /** @description the bytes to send */
                Range?: string;
                /** @description send the range only of this version, otherwise everything */
                "If-Range"?: string;
                /** @description answer 412 for any other version */
                "If-Match"?: string;
                /** @description answer 304 for this version */
                "If-None-Match"?: string;
                /** @description answer 304 for what has not changed since, without If-None-Match */
                "If-Modified-Since"?: string;
                /** @description answer 412 for what has changed since, without If-Match */
                "If-Unmodified-Since"?: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/octet-stream": string;
                };
            };
            206: {
                content: {
                    "application/octet-stream": string;
                };
            };
            304: {
            };
        };
    };
    writeFile: {
        parameters: {
            query?: {
                path?: string;
                path_base64?: string;
                user?: string;
                mode?: string;
                parents?: boolean;
                mkdir?: boolean;
                recursive?: boolean;
            };
            header?: {
                /** @description write only over this version */
                "If-Match"?: string;
                /** @description *: write only where there is nothing */
                "If-None-Match"?: string;
                /** @description write only over what has not changed since, without If-Match */
                "If-Unmodified-Since"?: string;
            };
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            written: true;
                            path: string;
                            path_base64?: string;
                            size: number;
                            etag: string;
                        } | {
                            created: boolean;
                        };
                    };
                };
            };
            201: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            written: true;
                            path: string;
                            path_base64?: string;
                            size: number;
                            etag: string;
                        } | {
                            created: boolean;
                        };
                    };
                };
            };
        };
    };
    createFile: {
        parameters: {
            query?: {
                path?: string;
                path_base64?: string;
                user?: string;
                mode?: string;
                parents?: boolean;
                mkdir?: boolean;
                recursive?: boolean;
            };
            header?: {
                /** @description write only over this version */
                "If-Match"?: string;
                /** @description *: write only where there is nothing */
                "If-None-Match"?: string;
                /** @description write only over what has not changed since, without If-Match */
                "If-Unmodified-Since"?: string;
            };
        };
        requestBody: {
            content: {
                "application/octet-stream": string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            written: true;
                            path: string;
                            path_base64?: string;
                            size: number;
                            etag: string;
                        } | {
                            created: boolean;
                        };
                    };
                };
            };
            201: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            written: true;
                            path: string;
                            path_base64?: string;
                            size: number;
                            etag: string;
                        } | {
                            created: boolean;
                        };
                    };
                };
            };
        };
    };
    removeFile: {
        parameters: {
            query?: {
                path?: string;
                path_base64?: string;
                user?: string;
                recursive?: boolean;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            deleted: true;
                        };
                    };
                };
            };
        };
    };
    headFile: {
        parameters: {
            query?: {
                path?: string;
                path_base64?: string;
                user?: string;
            };
            header?: {
                /** @description the bytes to send */
                Range?: string;
                /** @description send the range only of this version, otherwise everything */
                "If-Range"?: string;
                /** @description answer 412 for any other version */
                "If-Match"?: string;
                /** @description answer 304 for this version */
                "If-None-Match"?: string;
                /** @description answer 304 for what has not changed since, without If-None-Match */
                "If-Modified-Since"?: string;
                /** @description answer 412 for what has changed since, without If-Match */
                "If-Unmodified-Since"?: string;
            };
        };
        responses: {
            200: {
            };
            304: {
            };
        };
    };
    statFile: {
        parameters: {
            query?: {
                path?: string;
                path_base64?: string;
                user?: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            name: string;
                            path: string;
                            path_base64?: string;
                            /** @enum {unknown} */
                            type: "file" | "dir" | "symlink" | "other";
                            size: number;
                            mode: string;
                            /** Format: date-time */
                            mod_time: string;
                            is_link: boolean;
                            link_target: string | null;
                            uid: number;
                            gid: number;
                            user: string;
                            group: string;
                        };
                    };
                };
            };
        };
    };
    listFiles: {
        parameters: {
            query?: {
                path?: string;
                path_base64?: string;
                user?: string;
                depth?: number;
                limit?: number;
                cursor?: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            path: string;
                            path_base64?: string;
                            entries: {
                                name: string;
                                path: string;
                                path_base64?: string;
                                /** @enum {unknown} */
                                type: "file" | "dir" | "symlink" | "other";
                                size: number;
                                mode: string;
                                /** Format: date-time */
                                mod_time: string;
                                is_link: boolean;
                                link_target: string | null;
                                uid: number;
                                gid: number;
                                user: string;
                                group: string;
                            }[];
                            next_cursor: string | null;
                        };
                    };
                };
            };
        };
    };
    downloadArchive: {
        parameters: {
            query?: {
                path?: string;
                path_base64?: string;
                user?: string;
                format?: "tar" | "tar.gz";
            };
        };
        responses: {
            200: {
                content: {
                    "application/x-tar": string;
                };
            };
        };
    };
    uploadArchive: {
        parameters: {
            query?: {
                path?: string;
                path_base64?: string;
                user?: string;
            };
        };
        requestBody: {
            content: {
                "application/x-tar": string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            entries: number;
                            bytes: number;
                        };
                    };
                };
            };
        };
    };
    watchFiles: {
        parameters: {
            query?: {
                user?: string;
            };
        };
        responses: {
            101: {
            };
        };
    };
    moveFile: {
        parameters: {
            query?: {
                user?: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    source?: string;
                    source_base64?: string;
                    destination?: string;
                    destination_base64?: string;
                    /** @description default: false */
                    overwrite?: boolean;
                };
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            moved: true;
                        };
                    };
                };
            };
        };
    };
    copyFile: {
        parameters: {
            query?: {
                user?: string;
            };
        };
        requestBody: {
            content: {
                "application/json": {
                    source?: string;
                    source_base64?: string;
                    destination?: string;
                    destination_base64?: string;
                    /** @description default: false */
                    overwrite?: boolean;
                };
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            copied: true;
                        };
                    };
                };
            };
        };
    };
    getHealth: {
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            alive: true;
                        };
                    };
                };
            };
        };
    };
    getReadiness: {
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            /** @constant */
                            ready: true;
                            /** @description what was lost or is only polled, in words */
                            degraded?: string[];
                        };
                    };
                };
            };
        };
    };
    getMetrics: {
        responses: {
            200: {
                content: {
                    "text/plain": string;
                };
            };
        };
    };
    getDocument: {
        responses: {
            200: {
                content: {
                    "application/json": Record<string, never>;
                };
            };
        };
    };
}
