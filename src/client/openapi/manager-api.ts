// Made from the OpenAPI document by `npm run published`. Do not edit.

export interface paths {
    "/api/v1/sandboxes": {
        /** List the team's sandboxes, newest first */
        get: operations["listSandboxes"];
        /** Claim a sandbox */
        post: operations["claimSandbox"];
    };
    "/api/v1/sandboxes/{sandbox_id}": {
        /** Get one sandbox */
        get: operations["getSandbox"];
        /** Change a sandbox */
        put: operations["changeSandbox"];
        /** Delete a sandbox */
        delete: operations["deleteSandbox"];
    };
    "/api/v1/sandboxes/{sandbox_id}/status": {
        /** Get the status of a sandbox */
        get: operations["getSandboxStatus"];
    };
    "/api/v1/sandboxes/{sandbox_id}/refresh": {
        /** Restart a sandbox's ttl */
        post: operations["refreshSandbox"];
    };
    "/api/v1/sandboxes/{sandbox_id}/pause": {
        /** Pause a sandbox */
        post: operations["pauseSandbox"];
    };
    "/api/v1/sandboxes/{sandbox_id}/resume": {
        /** Resume a sandbox */
        post: operations["resumeSandbox"];
    };
    "/api/v1/sandboxes/{sandbox_id}/fork": {
        /** Fork a sandbox */
        post: operations["forkSandbox"];
    };
    "/api/v1/sandboxes/{sandbox_id}/processes/{process_id}/stdin": {
        /** Write to a process's stdin */
        post: operations["writeProcessStdin"];
    };
    "/api/v1/sandboxes/{sandbox_id}/files": {
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
    "/api/v1/sandboxes/{sandbox_id}/files/archive": {
        /** Download a directory as an archive */
        get: operations["downloadArchive"];
        /** Unpack an archive into a directory */
        put: operations["uploadArchive"];
    };
    "/api/v1/sandboxes/{sandbox_id}/processes": {
        /** List processes, newest first */
        get: operations["listProcesses"];
        /** Start a process */
        post: operations["startProcess"];
    };
    "/api/v1/sandboxes/{sandbox_id}/processes/{process_id}": {
        /** Get one process */
        get: operations["getProcess"];
        /** End a process */
        delete: operations["endProcess"];
    };
    "/api/v1/sandboxes/{sandbox_id}/processes/{process_id}/output": {
        /** Read a process's output */
        get: operations["readProcessOutput"];
    };
    "/api/v1/sandboxes/{sandbox_id}/processes/{process_id}/attach": {
        /** Attach to a process over a WebSocket */
        get: operations["attachProcess"];
    };
    "/api/v1/sandboxes/{sandbox_id}/processes/{process_id}/wait": {
        /** Wait until a process has ended or is ready */
        get: operations["waitForProcess"];
    };
    "/api/v1/sandboxes/{sandbox_id}/processes/{process_id}/signal": {
        /** Send a signal to a process */
        post: operations["signalProcess"];
    };
    "/api/v1/sandboxes/{sandbox_id}/processes/{process_id}/resize": {
        /** Resize a process's terminal */
        post: operations["resizeProcess"];
    };
    "/api/v1/sandboxes/{sandbox_id}/contexts": {
        /** List contexts, newest first */
        get: operations["listContexts"];
        /** Create a context: start a process */
        post: operations["createContext"];
    };
    "/api/v1/sandboxes/{sandbox_id}/contexts/{context_id}": {
        /** Get one context with its output */
        get: operations["getContext"];
        /** End a context */
        delete: operations["endContext"];
    };
    "/api/v1/sandboxes/{sandbox_id}/contexts/{context_id}/exec": {
        /** Write to a context and wait until it has ended */
        post: operations["execInContext"];
    };
    "/api/v1/sandboxes/{sandbox_id}/contexts/{context_id}/input": {
        /** Write to a context */
        post: operations["writeContextInput"];
    };
    "/api/v1/sandboxes/{sandbox_id}/contexts/{context_id}/resize": {
        /** Resize a context's terminal */
        post: operations["resizeContext"];
    };
    "/api/v1/sandboxes/{sandbox_id}/contexts/{context_id}/signal": {
        /** Send a signal to a context */
        post: operations["signalContext"];
    };
    "/api/v1/sandboxes/{sandbox_id}/contexts/{context_id}/restart": {
        /** End a context and start it anew */
        post: operations["restartContext"];
    };
    "/api/v1/sandboxes/{sandbox_id}/contexts/{context_id}/ws": {
        /** Attach to a context over a WebSocket */
        get: operations["attachContext"];
    };
    "/api/v1/sandboxes/{sandbox_id}/webhook/deliveries": {
        /** List a sandbox's deliveries, newest first */
        get: operations["listDeliveries"];
        /** Discard all records in a state */
        delete: operations["discardDeliveries"];
    };
    "/api/v1/sandboxes/{sandbox_id}/webhook/deliveries/{event_id}": {
        /** Get one delivery with its body and attempts */
        get: operations["getDelivery"];
        /** Discard a record that is not sent any more */
        delete: operations["discardDelivery"];
    };
    "/api/v1/sandboxes/{sandbox_id}/webhook/deliveries/replay": {
        /** Send all records in a state again */
        post: operations["replayDeliveries"];
    };
    "/api/v1/sandboxes/{sandbox_id}/webhook/deliveries/{event_id}/replay": {
        /** Send a record again */
        post: operations["replayDelivery"];
    };
    "/api/v1/sandboxes/{sandbox_id}/events/stream": {
        /** Follow a sandbox's records as they are committed */
        get: operations["streamEvents"];
    };
    "/api/v1/sandboxes/{sandbox_id}/files/stat": {
        /** Describe a path */
        get: operations["statFile"];
    };
    "/api/v1/sandboxes/{sandbox_id}/files/list": {
        /** List a directory */
        get: operations["listFiles"];
    };
    "/api/v1/sandboxes/{sandbox_id}/files/watch": {
        /** Watch directories over a WebSocket */
        get: operations["watchFiles"];
    };
    "/api/v1/sandboxes/{sandbox_id}/files/move": {
        /** Move a file or directory */
        post: operations["moveFile"];
    };
    "/api/v1/sandboxes/{sandbox_id}/files/copy": {
        /** Copy a file or directory */
        post: operations["copyFile"];
    };
    "/api/v1/events": {
        /** List the team's lifecycle events in commit order; as text/event-stream, follow them */
        get: operations["listEvents"];
    };
    "/api/v1/webhooks/deliveries": {
        /** List the team's deliveries, newest first */
        get: operations["listTeamDeliveries"];
        /** Discard all of the team's records in a state */
        delete: operations["discardTeamDeliveries"];
    };
    "/api/v1/webhooks/deliveries/{event_id}": {
        /** Get one of the team's deliveries with its body and attempts */
        get: operations["getTeamDelivery"];
        /** Discard one of the team's records that is not sent any more */
        delete: operations["discardTeamDelivery"];
    };
    "/api/v1/webhooks/deliveries/{event_id}/replay": {
        /** Send one of the team's records again */
        post: operations["replayTeamDelivery"];
    };
    "/api/v1/webhooks/deliveries/replay": {
        /** Send all of the team's records in a state again */
        post: operations["replayTeamDeliveries"];
    };
    "/api/v1/quotas": {
        /** List the team's quotas */
        get: operations["listQuotas"];
    };
    "/api/v1/quotas/{dimension}": {
        /** Get one of the team's quotas */
        get: operations["getQuota"];
    };
    "/internal/v1/teams/{team_id}/quotas/{dimension}": {
        /** Override a team's quota */
        put: operations["setTeamQuota"];
        /** Remove a team's override */
        delete: operations["unsetTeamQuota"];
    };
    "/api/v1/node": {
        /** Get the node's budget, its use, and what teams hold of it */
        get: operations["getNode"];
    };
    "/api/v1/usage/windows": {
        /** List the team's closed usage windows */
        get: operations["listUsageWindows"];
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
        ClaimSandboxRequest: {
            /**
             * @description 1 to 64 of A-Z a-z 0-9 _ - .
             * @default default
             */
            template?: string;
            config?: components["schemas"]["ClaimConfig"];
        };
        ClaimConfig: {
            webhook?: components["schemas"]["WebhookRequest"];
            metadata?: {
                [key: string]: string;
            };
            env_vars?: {
                [key: string]: string;
            };
            ttl?: number;
            hard_ttl?: number;
            idle_ttl?: number;
            /** @default false */
            auto_resume?: boolean;
            resources?: components["schemas"]["ResourcesRequest"];
            bandwidth?: components["schemas"]["BandwidthRequest"];
            network?: components["schemas"]["NetworkRequest"];
        };
        WebhookRequest: {
            url: string;
            secret?: string;
            /** @description an absolute path of at most 4096 characters */
            watch_dir?: string;
            /** @description a list of at most 100 globs of 1 to 256 characters */
            watch_ignore?: string[];
            /** @description a list of at least one, none of them twice, of sandbox.ready, sandbox.paused, sandbox.resumed, sandbox.killed, sandbox.deleted, process.started, process.exited, process.crashed, file.modified, agent.event */
            events?: components["schemas"]["EventType"][];
            retry?: components["schemas"]["WebhookRetry"];
        };
        /** @enum {unknown} */
        EventType: "sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event";
        /** @enum {unknown} */
        WebhookRetry: "transient" | "any";
        ResourcesRequest: {
            /** @description a size like 128Mi or 1Gi, from 128Mi to 2048Ti */
            memory?: string;
            /** @description cores, like 0.5 or 2 */
            cpu?: number | string;
            /** @description a size like 128Mi or 1Gi, from 128Mi to 2048Ti */
            disk?: string;
        };
        BandwidthRequest: {
            egress_bandwidth_bytes_per_second?: number;
            ingress_bandwidth_bytes_per_second?: number;
            /** @description 0 is one second of the rate; values below 65536 are raised to 65536 */
            bandwidth_burst_bytes?: number;
        };
        NetworkRequest: {
            /**
             * @default allow-all
             * @enum {unknown}
             */
            mode?: "allow-all" | "block-all";
        };
        ClaimedSandboxResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["ClaimedSandbox"];
        };
        ClaimedSandbox: {
            sandbox_id: string;
            status: components["schemas"]["ActiveStatus"];
            pod_name: string;
            runtime_id: string;
            persistence: components["schemas"]["Persistence"] | null;
            template: string;
            cluster_id: string;
        };
        /** @enum {unknown} */
        ActiveStatus: "starting" | "running" | "paused" | "terminating" | "failed";
        /** @enum {unknown} */
        Persistence: "root" | "volume";
        SandboxListResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["SandboxList"];
        };
        SandboxList: {
            sandboxes: components["schemas"]["Sandbox"][];
            count: number;
            has_more: boolean;
        };
        Sandbox: {
            id: string;
            template_id: string;
            team_id: string;
            status: components["schemas"]["RecordStatus"];
            failure: "runtime_lost" | null;
            paused: boolean;
            auto_resume: boolean;
            idle_ttl: number;
            pod_name: string | null;
            runtime_id: string | null;
            persistence: components["schemas"]["Persistence"] | null;
            runtime_generation: number;
            resources: components["schemas"]["SandboxResources"];
            bandwidth: components["schemas"]["SandboxBandwidth"];
            network: components["schemas"]["SandboxNetwork"];
            network_usage: components["schemas"]["NetworkUsage"] | null;
            webhook: components["schemas"]["SandboxWebhook"] | null;
            metadata: {
                [key: string]: string;
            };
            env_names: string[];
            expires_at: string | null;
            hard_expires_at: string | null;
            claimed_at: string | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            updated_at: string;
        };
        /** @enum {unknown} */
        RecordStatus: "starting" | "running" | "paused" | "terminating" | "failed" | "deleted";
        SandboxResources: {
            memory: string;
            cpu: number | string;
            disk: string;
        };
        SandboxBandwidth: {
            egress_bandwidth_bytes_per_second: number;
            ingress_bandwidth_bytes_per_second: number;
            bandwidth_burst_bytes: number;
        };
        SandboxNetwork: {
            /** @enum {unknown} */
            mode: "allow-all" | "block-all";
            enforced_by: ("network_namespace" | "network_policy") | null;
        };
        NetworkUsage: {
            egress: components["schemas"]["Traffic"];
            ingress: components["schemas"]["Traffic"];
        };
        Traffic: {
            passed_bytes: number;
            passed_packets: number;
            dropped_bytes: number;
            dropped_packets: number;
            waited_ms: number;
        };
        SandboxWebhook: {
            url: string;
            watch_dir: string | null;
            /** @description a list of at most 100 globs of 1 to 256 characters */
            watch_ignore: string[];
            /** @description a list of at least one, none of them twice, of sandbox.ready, sandbox.paused, sandbox.resumed, sandbox.killed, sandbox.deleted, process.started, process.exited, process.crashed, file.modified, agent.event */
            events: components["schemas"]["EventType"][];
            retry: components["schemas"]["WebhookRetry"];
            has_secret: boolean;
        };
        SandboxResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Sandbox"];
        };
        ChangeSandboxRequest: {
            config: components["schemas"]["ChangeConfig"];
        };
        ChangeConfig: {
            resources?: components["schemas"]["ResourcesChange"];
            env_vars?: {
                [key: string]: string;
            };
            ttl?: number;
            hard_ttl?: number;
            idle_ttl?: number;
            auto_resume?: boolean;
            /** @description refused: can only be set at claim */
            webhook?: unknown;
        };
        ResourcesChange: {
            /** @description a size like 128Mi or 1Gi, from 128Mi to 2048Ti */
            memory?: string;
        };
        DeletedSandboxResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["DeletedSandbox"];
        };
        DeletedSandbox: {
            message: string;
        };
        SandboxStatusResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["SandboxStatus"];
        };
        SandboxStatus: {
            sandbox_id: string;
            template_id: string;
            team_id: string;
            pod_name: string | null;
            runtime_id: string | null;
            status: components["schemas"]["ActiveStatus"];
            claimed_at: string | null;
            expires_at: string | null;
            hard_expires_at: string | null;
            /** Format: date-time */
            created_at: string;
        };
        RefreshSandboxRequest: {
            duration?: number;
        };
        RefreshedSandboxResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["RefreshedSandbox"];
        };
        RefreshedSandbox: {
            sandbox_id: string;
            expires_at: string | null;
            hard_expires_at: string | null;
        };
        SandboxSwitchRequest: {
            reason?: string;
            /**
             * @description whether processes are kept
             * @default true
             */
            memory?: boolean;
        };
        PausedSandboxResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["PausedSandbox"];
        };
        PausedSandbox: {
            sandbox_id: string;
            paused: boolean;
            status: components["schemas"]["ActiveStatus"];
            /** @description whether the processes were kept */
            memory: boolean;
        };
        ResumedSandboxResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["ResumedSandbox"];
        };
        ResumedSandbox: {
            sandbox_id: string;
            resumed: boolean;
            /** @description whether the processes were kept */
            memory: boolean;
        };
        ForkSandboxRequest: {
            config?: components["schemas"]["ForkConfig"];
            /**
             * @description whether processes are kept
             * @default true
             */
            memory?: boolean;
        };
        ForkConfig: {
            ttl?: number;
            hard_ttl?: number;
            webhook?: components["schemas"]["WebhookRequest"];
        };
        ForkedSandboxResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["ForkedSandbox"];
        };
        ForkedSandbox: {
            source_sandbox_id: string;
            sandbox: components["schemas"]["Sandbox"];
            /** @description whether the processes were kept */
            memory: boolean;
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
        DeletedResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Deleted"];
        };
        Deleted: {
            /** @constant */
            deleted: true;
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
        /** @enum {unknown} */
        ProcessState: "running" | "paused" | "exited" | "crashed" | "restarting";
        ResourceUsage: {
            cpu_ms: number;
            memory_bytes: number;
            processes: number;
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
        StartedOutput: {
            stdout: string;
            stderr: string;
            stdout_truncated: boolean;
            stderr_truncated: boolean;
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
        ContextListResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["ContextList"];
        };
        ContextList: {
            contexts: components["schemas"]["Context"][];
            next_cursor: string | null;
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
        ContextInput: {
            data: string;
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
        ContextWrittenResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["ContextWritten"];
        };
        ContextWritten: {
            /** @constant */
            written: true;
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
        /** @enum {unknown} */
        DeliveryState: "pending" | "delivered" | "failed" | "expired" | "foreign";
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
        AttemptError: "dns" | "connect" | "tls" | "timeout" | "reset" | "protocol" | "blocked";
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
        /** @enum {unknown} */
        LifecycleEventType: "sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted";
        EventPageResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["EventPage"];
        };
        EventPage: {
            events: components["schemas"]["LifecycleEvent"][];
            next_cursor: string;
        };
        LifecycleEvent: {
            event_id: string;
            event_type: components["schemas"]["LifecycleEventType"];
            sandbox_id: string;
            sequence: number | null;
            /** Format: date-time */
            timestamp: string;
            /** @description the exact body of the webhook's request */
            body: string;
        };
        TeamDeliveryPageResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["TeamDeliveryPage"];
        };
        TeamDeliveryPage: {
            deliveries: components["schemas"]["TeamDelivery"][];
            next_cursor: string | null;
        };
        TeamDelivery: {
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
            sandbox_id: string;
        };
        TeamDeliveryDetailResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["TeamDeliveryDetail"];
        };
        TeamDeliveryDetail: {
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
            sandbox_id: string;
        };
        ListQuotasResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Quota"][];
        };
        Quota: {
            team_id: string;
            dimension: components["schemas"]["Dimension"];
            /** @enum {unknown} */
            kind: "capacity" | "rate";
            limit_value: number | null;
            interval_ms: number | null;
            burst_value: number | null;
            current: number | null;
            remaining: number | null;
            unlimited: boolean;
            /** @enum {unknown} */
            unit: "count" | "claims" | "requests" | "bytes";
            /** @enum {unknown} */
            source: "team_override" | "region_default" | "unlimited";
            enforced: boolean;
        };
        /** @enum {unknown} */
        Dimension: "active_sandboxes" | "sandbox_claims" | "api_requests" | "network_egress_bytes" | "network_ingress_bytes";
        QuotaResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Quota"];
        };
        QuotaPolicy: {
            kind?: ("capacity" | "rate") | null;
            limit_value: number;
            interval_ms?: number | null;
            burst_value?: number | null;
        };
        NodeResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Node"];
        };
        Node: {
            budget: components["schemas"]["NodeBudget"];
            use: components["schemas"]["NodeUse"];
            unrecorded: components["schemas"]["UnrecordedUse"];
            team_share: number;
            share: components["schemas"]["TeamShare"];
            teams: components["schemas"]["TeamUse"][];
            has_more: boolean;
        };
        NodeBudget: {
            memory_mib: number | null;
            cpu_millis: number | null;
            sandboxes: number | null;
            disk_mib: number | null;
        };
        NodeUse: {
            memory_mib: number;
            cpu_millis: number;
            sandboxes: number;
            disk_mib: number;
            paused: number;
            paused_memory_mib: number;
        };
        UnrecordedUse: {
            memory_mib: number;
            cpu_millis: number;
            sandboxes: number;
            disk_mib: number;
            paused: number;
            paused_memory_mib: number;
        };
        TeamShare: {
            disk_mib: number | null;
            paused_memory_mib: number | null;
        };
        TeamUse: {
            team_id: string;
            memory_mib: number;
            cpu_millis: number;
            sandboxes: number;
            disk_mib: number;
            paused: number;
            paused_memory_mib: number;
        };
        /** @enum {unknown} */
        WindowType: "sandbox.runtime_mib_milliseconds" | "sandbox.runtime_millicpu_milliseconds" | "sandbox.egress_bytes" | "sandbox.ingress_bytes" | "sandbox.transfer_bytes";
        UsagePageResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["UsagePage"];
        };
        UsagePage: {
            windows: components["schemas"]["UsageWindow"][];
            next_cursor: string;
        };
        UsageWindow: {
            window_id: string;
            region_id: string;
            cluster_id: string;
            window_type: components["schemas"]["WindowType"];
            /** @constant */
            subject_type: "sandbox";
            subject_id: string;
            sandbox_id: string;
            /** Format: date-time */
            window_start: string;
            /** Format: date-time */
            window_end: string;
            value: number;
            /** @enum {unknown} */
            unit: "mib_milliseconds" | "millicpu_milliseconds" | "bytes";
            /** Format: date-time */
            recorded_at: string;
        };
        HealthResponse: {
            /** @constant */
            success: true;
            data: components["schemas"]["Health"];
        };
        Health: {
            /** @constant */
            alive: true;
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
    listSandboxes: {
        parameters: {
            query?: {
                status?: components["schemas"]["ActiveStatus"];
                template_id?: string;
                paused?: boolean;
                metadata?: string[];
                limit?: number;
                offset?: number;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["SandboxListResponse"];
                };
            };
        };
    };
    claimSandbox: {
        parameters: {
            header?: {
                /** @description a repeated key with the same body returns the first answer */
                "Idempotency-Key"?: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ClaimSandboxRequest"];
            };
        };
        responses: {
            201: {
                content: {
                    "application/json": components["schemas"]["ClaimedSandboxResponse"];
                };
            };
        };
    };
    getSandbox: {
        parameters: {
            query?: {
                include_deleted?: boolean;
            };
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["SandboxResponse"];
                };
            };
        };
    };
    changeSandbox: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangeSandboxRequest"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["SandboxResponse"];
                };
            };
        };
    };
    deleteSandbox: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
        responses: {
            202: {
                content: {
                    "application/json": components["schemas"]["DeletedSandboxResponse"];
                };
            };
        };
    };
    getSandboxStatus: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["SandboxStatusResponse"];
                };
            };
        };
    };
    refreshSandbox: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["RefreshSandboxRequest"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["RefreshedSandboxResponse"];
                };
            };
        };
    };
    pauseSandbox: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SandboxSwitchRequest"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["PausedSandboxResponse"];
                };
            };
        };
    };
    resumeSandbox: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["SandboxSwitchRequest"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["ResumedSandboxResponse"];
                };
            };
        };
    };
    forkSandbox: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ForkSandboxRequest"];
            };
        };
        responses: {
            201: {
                content: {
                    "application/json": components["schemas"]["ForkedSandboxResponse"];
                };
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
        responses: {
            200: {
            };
            304: {
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    listProcesses: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    listContexts: {
        parameters: {
            query?: {
                limit?: number;
                cursor?: string;
            };
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    execInContext: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    writeContextInput: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    resizeContext: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    restartContext: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
                /** @example build */
                context_id: string;
            };
        };
        responses: {
            101: {
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    replayDeliveries: {
        parameters: {
            query: {
                state: components["schemas"]["FinalState"];
            };
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    replayDelivery: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    streamEvents: {
        parameters: {
            header?: {
                /** @description the id of the last event received */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    statFile: {
        parameters: {
            query?: {
                path?: string;
                path_base64?: string;
                user?: string;
            };
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    watchFiles: {
        parameters: {
            query?: {
                user?: string;
            };
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    listEvents: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                event_type?: components["schemas"]["LifecycleEventType"];
                sandbox_id?: string;
            };
            header?: {
                /** @description the id of the last event received */
                "Last-Event-ID"?: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["EventPageResponse"];
                    "text/event-stream": string;
                };
            };
        };
    };
    listTeamDeliveries: {
        parameters: {
            query?: {
                state?: components["schemas"]["DeliveryState"];
                event_type?: components["schemas"]["EventType"];
                limit?: number;
                cursor?: string;
                sandbox_id?: string;
                endpoint?: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["TeamDeliveryPageResponse"];
                };
            };
        };
    };
    discardTeamDeliveries: {
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
    getTeamDelivery: {
        parameters: {
            path: {
                /** @example evt_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                event_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["TeamDeliveryDetailResponse"];
                };
            };
        };
    };
    discardTeamDelivery: {
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
    replayTeamDelivery: {
        parameters: {
            path: {
                /** @example evt_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                event_id: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["TeamDeliveryDetailResponse"];
                };
            };
        };
    };
    replayTeamDeliveries: {
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
    listQuotas: {
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["ListQuotasResponse"];
                };
            };
        };
    };
    getQuota: {
        parameters: {
            path: {
                /** @example api_requests */
                dimension: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["QuotaResponse"];
                };
            };
        };
    };
    setTeamQuota: {
        parameters: {
            path: {
                /** @example team-acme */
                team_id: string;
                /** @example api_requests */
                dimension: string;
            };
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["QuotaPolicy"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["QuotaResponse"];
                };
            };
        };
    };
    unsetTeamQuota: {
        parameters: {
            path: {
                /** @example team-acme */
                team_id: string;
                /** @example api_requests */
                dimension: string;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["QuotaResponse"];
                };
            };
        };
    };
    getNode: {
        parameters: {
            query?: {
                limit?: number;
                offset?: number;
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["NodeResponse"];
                };
            };
        };
    };
    listUsageWindows: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                window_type?: components["schemas"]["WindowType"];
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": components["schemas"]["UsagePageResponse"];
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
