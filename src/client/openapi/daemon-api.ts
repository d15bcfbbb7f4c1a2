// Made from the OpenAPI document by `npm run published`. Do not edit.

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
        /** Discard all records in a state */
        delete: operations["discardDeliveries"];
    };
    "/api/v1/webhook/deliveries/{event_id}": {
        /** Get one delivery with its body and attempts */
        get: operations["getDelivery"];
        /** Discard a record that is not sent any more */
        delete: operations["discardDelivery"];
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
        /** List processes, newest first */
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
        /** List contexts, newest first */
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
export interface components {
    schemas: {
        PublishRequest: {
            payload: {
                [key: string]: unknown;
            };
        };
        PublishReceiptResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["PublishReceipt"];
        };
        PublishReceipt: {
            event_id: string;
            sequence: number;
        };
        DeliveryDetailResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["DeliveryDetail"];
        };
        DeliveryDetail: {
            event_id: string;
            event_type: components["schemas"]["EventType"];
            sequence: number | null;
            state: components["schemas"]["DeliveryState"];
            /** Format: date-time */
            created_at: string;
            finished_at: string | null;
            next_attempt_at: string | null;
            attempt_count: number;
            last_status: number | null;
            last_error: components["schemas"]["AttemptError"] | null;
            last_error_detail: string | null;
            body: string;
            headers: {
                [key: string]: string;
            };
            attempts: components["schemas"]["DeliveryAttempt"][];
        };
        /** @enum {unknown} */
        EventType: "sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event";
        /** @enum {unknown} */
        DeliveryState: "pending" | "delivered" | "failed" | "expired" | "foreign";
        /** @enum {unknown} */
        AttemptError: "dns" | "connect" | "tls" | "timeout" | "reset" | "protocol" | "blocked";
        DeliveryAttempt: {
            attempt: number;
            /** Format: date-time */
            started_at: string;
            duration_ms: number;
            status: number | null;
            error: components["schemas"]["AttemptError"] | null;
            error_detail: string | null;
            next_attempt_at: string | null;
            response_body: string | null;
        };
        DeliveryPageResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["DeliveryPage"];
        };
        DeliveryPage: {
            deliveries: components["schemas"]["Delivery"][];
            next_cursor: string | null;
        };
        Delivery: {
            event_id: string;
            event_type: components["schemas"]["EventType"];
            sequence: number | null;
            state: components["schemas"]["DeliveryState"];
            /** Format: date-time */
            created_at: string;
            finished_at: string | null;
            next_attempt_at: string | null;
            attempt_count: number;
            last_status: number | null;
            last_error: components["schemas"]["AttemptError"] | null;
            last_error_detail: string | null;
        };
        /** @enum {unknown} */
        UndeliveredState: "failed" | "expired";
        DiscardedResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Discarded"];
        };
        Discarded: {
            discarded: number;
        };
        /** @enum {unknown} */
        FinalState: "failed" | "expired" | "delivered";
        ReplayedResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Replayed"];
        };
        Replayed: {
            replayed: number;
        };
        SandboxViewResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["SandboxView"];
        };
        SandboxView: {
            sandbox_id: string;
            team_id: string;
            state: components["schemas"]["SandboxState"];
            version: string;
            uptime_ms: number;
            outbox: components["schemas"]["OutboxCounts"];
            endpoint: components["schemas"]["EndpointHealth"] | null;
            watcher: components["schemas"]["WatcherState"] | null;
            resource_usage: components["schemas"]["ResourceUsage"];
        };
        /** @enum {unknown} */
        SandboxState: "awaiting_init" | "running" | "paused" | "stopping";
        OutboxCounts: {
            pending: number;
            delivered: number;
            failed: number;
            expired: number;
            foreign: number;
            bytes: number;
        };
        EndpointHealth: {
            /** @enum {unknown} */
            health: "ok" | "backing_off" | "rejecting";
            next_probe_at: string | null;
            refusals: components["schemas"]["EndpointRefusals"] | null;
        };
        EndpointRefusals: {
            status: number;
            count: number;
        };
        WatcherState: {
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
        };
        ResourceUsage: {
            cpu_ms: number;
            memory_bytes: number;
            processes: number;
        };
        SandboxSwitchRequest: {
            reason?: string | null;
            /** @default true */
            memory?: boolean;
            flush_ms?: number;
        };
        SwitchedStateResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["SwitchedState"];
        };
        SwitchedState: {
            state: components["schemas"]["SandboxState"];
            memory: boolean;
        };
        EnvironmentRequest: {
            env: {
                [key: string]: string | null;
            };
        };
        EnvironmentNamesResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["EnvironmentNames"];
        };
        EnvironmentNames: {
            names: string[];
        };
        InitSandboxRequest: {
            sandbox_id: string;
            team_id: string;
            webhook?: components["schemas"]["InitWebhook"];
            env?: {
                [key: string]: string;
            };
            record_key?: string;
        };
        InitWebhook: {
            url: string;
            secret?: string;
            watch_dir?: string;
            /** @description a list of at most 100 globs of 1 to 256 characters */
            watch_ignore?: string[];
            /** @description a list of at least one, none of them twice, of sandbox.ready, sandbox.paused, sandbox.resumed, sandbox.killed, sandbox.deleted, process.started, process.exited, process.crashed, file.modified, agent.event */
            events?: components["schemas"]["EventType"][];
            retry?: components["schemas"]["WebhookRetry"];
            allow_cidrs?: string[];
            /** @enum {unknown} */
            egress?: "direct" | "manager";
        };
        /** @enum {unknown} */
        WebhookRetry: "transient" | "any";
        InitialisedResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Initialised"];
        };
        Initialised: {
            state: components["schemas"]["SandboxState"];
            version: string;
            features: string[];
        };
        /** @description exactly one of command and shell */
        StartProcessRequest: {
            /** @description an array of strings without NUL, of which the first is the program */
            command?: string[];
            /** @description a non-empty string without NUL */
            shell?: string;
            /** @description 1 to 128 of A-Z a-z 0-9 _ - . : and not . or .. */
            process_id?: string;
            /** @description a non-empty string without NUL of at most 4096 characters */
            cwd?: string;
            env?: {
                [key: string]: string;
            };
            /** @description a string without NUL of at most 256 characters */
            user?: string;
            /** @description a string without NUL of at most 256 characters */
            name?: string;
            /** @enum {unknown} */
            stdin?: "pipe" | "ignore";
            timeout_ms?: number;
            restart?: components["schemas"]["RestartPolicy"];
            pty?: components["schemas"]["TerminalSize"];
            ready?: components["schemas"]["ReadyProbe"];
        };
        RestartPolicy: {
            /** @enum {unknown} */
            policy: "never" | "on-failure" | "always";
            max_restarts?: number;
            backoff_ms?: number;
        };
        TerminalSize: {
            cols: number;
            rows: number;
        };
        /** @description exactly one of port and log */
        ReadyProbe: {
            port?: number;
            /** @description a text of 1 to 1024 characters */
            log?: string;
        };
        StartedProcessResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["StartedProcess"];
        };
        StartedProcess: {
            process_id: string;
            name: string | null;
            pid: number;
            state: components["schemas"]["ProcessState"];
            command: string[];
            command_truncated: boolean;
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
            resource_usage: components["schemas"]["ResourceUsage"];
            output?: components["schemas"]["StartedOutput"];
        };
        /** @enum {unknown} */
        ProcessState: "running" | "paused" | "exited" | "crashed" | "restarting";
        StartedOutput: {
            stdout: string;
            stderr: string;
            stdout_truncated: boolean;
            stderr_truncated: boolean;
        };
        ProcessListResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["ProcessList"];
        };
        ProcessList: {
            processes: components["schemas"]["Process"][];
            next_cursor: string | null;
        };
        Process: {
            process_id: string;
            name: string | null;
            pid: number;
            state: components["schemas"]["ProcessState"];
            command: string[];
            command_truncated: boolean;
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
            resource_usage: components["schemas"]["ResourceUsage"];
        };
        ProcessResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Process"];
        };
        ProcessSignal: {
            signal: string;
            /** @enum {unknown} */
            scope?: "group" | "leader";
        };
        CreateContextRequest: {
            /** @enum {unknown} */
            type?: "cmd" | "repl";
            cmd?: components["schemas"]["ContextCommand"];
            repl?: unknown;
            wait_until_done?: boolean;
            /** @description a string without NUL of at most 4096 characters */
            cwd?: string;
            env_vars?: {
                [key: string]: string;
            };
            pty_size?: components["schemas"]["TerminalSize"];
            idle_timeout_sec?: number;
            ttl_sec?: number;
        };
        ContextCommand: {
            command: string[];
        };
        ContextResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Context"];
        };
        Context: {
            id: string;
            /** @constant */
            type: "cmd";
            cwd: string;
            running: boolean;
            paused: boolean;
            /** Format: date-time */
            created_at: string;
            exit_code?: number;
            state?: components["schemas"]["ContextEnd"];
            output_raw?: string;
            stdout?: string;
            stderr?: string;
        };
        /** @enum {unknown} */
        ContextEnd: "stopped" | "crashed";
        ContextListResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["ContextList"];
        };
        ContextList: {
            contexts: components["schemas"]["Context"][];
            next_cursor: string | null;
        };
        DeletedResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Deleted"];
        };
        Deleted: {
            /** @constant */
            deleted: true;
        };
        ContextInput: {
            data: string;
        };
        ContextWrittenResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["ContextWritten"];
        };
        ContextWritten: {
            /** @constant */
            written: true;
        };
        ContextResultResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["ContextResult"];
        };
        ContextResult: {
            output_raw: string;
            stdout: string;
            stderr: string;
            exit_code?: number;
            state?: components["schemas"]["ContextEnd"];
        };
        ContextResizedResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["ContextResized"];
        };
        ContextResized: {
            /** @constant */
            resized: true;
        };
        ContextSignal: {
            signal: string;
        };
        ContextSignaledResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["ContextSignaled"];
        };
        ContextSignaled: {
            /** @constant */
            signaled: true;
        };
        CreateFileResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["WrittenFile"] | components["schemas"]["MadeDirectory"];
        };
        WrittenFile: {
            /** @constant */
            written: true;
            path: string;
            path_base64?: string;
            size: number;
            etag: string;
        };
        MadeDirectory: {
            created: boolean;
        };
        WriteFileResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["WrittenFile"] | components["schemas"]["MadeDirectory"];
        };
        FileEntryResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["FileEntry"];
        };
        FileEntry: {
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
        FilePageResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["FilePage"];
        };
        FilePage: {
            path: string;
            path_base64?: string;
            entries: components["schemas"]["FileEntry"][];
            next_cursor: string | null;
        };
        UnpackedResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Unpacked"];
        };
        Unpacked: {
            entries: number;
            bytes: number;
        };
        TwoPaths: {
            source?: string;
            source_base64?: string;
            destination?: string;
            destination_base64?: string;
            /** @description default: false */
            overwrite?: boolean;
        };
        MovedResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Moved"];
        };
        Moved: {
            /** @constant */
            moved: true;
        };
        CopiedResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Copied"];
        };
        Copied: {
            /** @constant */
            copied: true;
        };
        HealthResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Health"];
        };
        Health: {
            /** @constant */
            alive: true;
            version: string;
            features: string[];
        };
        ReadinessResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Readiness"];
        };
        Readiness: {
            /** @constant */
            ready: true;
            /** @description what was lost or is only polled, in words */
            degraded?: string[];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
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
                "application/json": components["schemas"]["PublishRequest"];
            };
        };
        responses: {
            202: {
                content: {
                    "application/json": components["schemas"]["PublishReceiptResponse"];
                };
            };
        };
    };
    publishTestEvent: {
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["DeliveryDetailResponse"];
                };
            };
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                state?: components["schemas"]["DeliveryState"];
                event_type?: components["schemas"]["EventType"];
                limit?: number;
                cursor?: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["DeliveryPageResponse"];
                };
            };
        };
    };
    discardDeliveries: {
        parameters: {
            query: {
                state: components["schemas"]["UndeliveredState"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["DiscardedResponse"];
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
                    "application/json": components["schemas"]["DeliveryDetailResponse"];
                };
            };
        };
    };
    discardDelivery: {
        parameters: {
            path: {
                /** @example evt_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                event_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["DiscardedResponse"];
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
                    "application/json": components["schemas"]["DeliveryDetailResponse"];
                };
            };
        };
    };
    replayDeliveries: {
        parameters: {
            query: {
                state: components["schemas"]["FinalState"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["ReplayedResponse"];
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
                    "application/json": components["schemas"]["SandboxViewResponse"];
                };
            };
        };
    };
    pauseSandbox: {
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SandboxSwitchRequest"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["SwitchedStateResponse"];
                };
            };
        };
    };
    resumeSandbox: {
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SandboxSwitchRequest"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["SwitchedStateResponse"];
                };
            };
        };
    };
    setEnvironment: {
        requestBody: {
            content: {
                "application/json": components["schemas"]["EnvironmentRequest"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["EnvironmentNamesResponse"];
                };
            };
        };
    };
    initSandbox: {
        requestBody: {
            content: {
                "application/json": components["schemas"]["InitSandboxRequest"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["InitialisedResponse"];
                };
            };
        };
    };
    listProcesses: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["ProcessListResponse"];
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
                "application/json": components["schemas"]["StartProcessRequest"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["StartedProcessResponse"];
                };
            };
            201: {
                content: {
                    "application/json": components["schemas"]["StartedProcessResponse"];
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
                    "application/json": components["schemas"]["ProcessResponse"];
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
                    "application/json": components["schemas"]["ProcessResponse"];
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
                    "application/json": components["schemas"]["ProcessResponse"];
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
                "application/json": components["schemas"]["ProcessSignal"];
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
                "application/json": components["schemas"]["TerminalSize"];
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
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["ContextListResponse"];
                };
            };
        };
    };
    createContext: {
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateContextRequest"];
            };
        };
        responses: {
            201: {
                content: {
                    "application/json": components["schemas"]["ContextResponse"];
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
                    "application/json": components["schemas"]["ContextResponse"];
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
                    "application/json": components["schemas"]["DeletedResponse"];
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
                    "application/json": components["schemas"]["ContextResponse"];
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
                "application/json": components["schemas"]["ContextInput"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["ContextWrittenResponse"];
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
                "application/json": components["schemas"]["ContextInput"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["ContextResultResponse"];
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
                "application/json": components["schemas"]["TerminalSize"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["ContextResizedResponse"];
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
                "application/json": components["schemas"]["ContextSignal"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["ContextSignaledResponse"];
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
                    "application/json": components["schemas"]["WriteFileResponse"];
                };
            };
            201: {
                content: {
                    "application/json": components["schemas"]["WriteFileResponse"];
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
                    "application/json": components["schemas"]["CreateFileResponse"];
                };
            };
            201: {
                content: {
                    "application/json": components["schemas"]["CreateFileResponse"];
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
                    "application/json": components["schemas"]["DeletedResponse"];
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
                    "application/json": components["schemas"]["FileEntryResponse"];
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
                    "application/json": components["schemas"]["FilePageResponse"];
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
                exact?: boolean;
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
                exact?: boolean;
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
                    "application/json": components["schemas"]["UnpackedResponse"];
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
                "application/json": components["schemas"]["TwoPaths"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["MovedResponse"];
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
                "application/json": components["schemas"]["TwoPaths"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["CopiedResponse"];
                };
            };
        };
    };
    getHealth: {
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["HealthResponse"];
                };
            };
        };
    };
    getReadiness: {
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["ReadinessResponse"];
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
