// Made from the OpenAPI document by `npm run client-types`. Do not edit.

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
        /** List processes */
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
        /** List contexts */
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
    };
    "/api/v1/sandboxes/{sandbox_id}/webhook/deliveries/{event_id}": {
        /** Get one delivery with its body and attempts */
        get: operations["getDelivery"];
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
    };
    "/api/v1/webhooks/deliveries/{event_id}": {
        /** Get one of the team's deliveries with its body and attempts */
        get: operations["getTeamDelivery"];
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
export interface operations {
    listSandboxes: {
        parameters: {
            query?: {
                status?: "starting" | "running" | "paused" | "terminating" | "failed";
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
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            sandboxes: {
                                id: string;
                                template_id: string;
                                team_id: string;
                                /** @enum {unknown} */
                                status: "starting" | "running" | "paused" | "terminating" | "failed" | "deleted";
                                failure: "runtime_lost" | null;
                                paused: boolean;
                                auto_resume: boolean;
                                idle_ttl: number;
                                pod_name: string | null;
                                runtime_generation: number;
                                resources: {
                                    memory: string;
                                    cpu: number | string;
                                    disk: string;
                                };
                                bandwidth: {
                                    egress_bandwidth_bytes_per_second: number;
                                    ingress_bandwidth_bytes_per_second: number;
                                    bandwidth_burst_bytes: number;
                                };
                                network: {
                                    /** @enum {unknown} */
                                    mode: "allow-all" | "block-all";
                                };
                                network_usage: {
                                    egress: {
                                        passed_bytes: number;
                                        passed_packets: number;
                                        dropped_bytes: number;
                                        dropped_packets: number;
                                        waited_ms: number;
                                    };
                                    ingress: {
                                        passed_bytes: number;
                                        passed_packets: number;
                                        dropped_bytes: number;
                                        dropped_packets: number;
                                        waited_ms: number;
                                    };
                                } | null;
                                webhook: {
                                    url: string;
                                    watch_dir: string | null;
                                    /** @description a list of at most 100 globs of 1 to 256 characters */
                                    watch_ignore: string[];
                                    /** @description a list of at least one, none of them twice, of sandbox.ready, sandbox.paused, sandbox.resumed, sandbox.killed, sandbox.deleted, process.started, process.exited, process.crashed, file.modified, agent.event */
                                    events: ("sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event")[];
                                    has_secret: boolean;
                                } | null;
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
                            }[];
                            count: number;
                            has_more: boolean;
                        };
                    };
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
                "application/json": {
                    /**
                     * @description 1 to 64 of A-Z a-z 0-9 _ - .
                     * @default default
                     */
                    template?: string;
                    config?: {
                        webhook?: {
                            url: string;
                            secret?: string;
                            /** @description an absolute path of at most 4096 characters */
                            watch_dir?: string;
                            /** @description a list of at most 100 globs of 1 to 256 characters */
                            watch_ignore?: string[];
                            /** @description a list of at least one, none of them twice, of sandbox.ready, sandbox.paused, sandbox.resumed, sandbox.killed, sandbox.deleted, process.started, process.exited, process.crashed, file.modified, agent.event */
                            events?: ("sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event")[];
                        };
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
                        resources?: {
                            /** @description a size like 128Mi or 1Gi, from 128Mi to 2048Ti */
                            memory?: string;
                            /** @description cores, like 0.5 or 2 */
                            cpu?: number | string;
                            /** @description a size like 128Mi or 1Gi, from 128Mi to 2048Ti */
                            disk?: string;
                        };
                        bandwidth?: {
                            egress_bandwidth_bytes_per_second?: number;
                            ingress_bandwidth_bytes_per_second?: number;
                            /** @description 0 is one second of the rate; values below 65536 are raised to 65536 */
                            bandwidth_burst_bytes?: number;
                        };
                        network?: {
                            /**
                             * @default allow-all
                             * @enum {unknown}
                             */
                            mode?: "allow-all" | "block-all";
                        };
                    };
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
                            sandbox_id: string;
                            /** @enum {unknown} */
                            status: "starting" | "running" | "paused" | "terminating" | "failed";
                            pod_name: string;
                            template: string;
                            cluster_id: string;
                        };
                    };
                };
            };
        };
    };
    getSandbox: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                            template_id: string;
                            team_id: string;
                            /** @enum {unknown} */
                            status: "starting" | "running" | "paused" | "terminating" | "failed" | "deleted";
                            failure: "runtime_lost" | null;
                            paused: boolean;
                            auto_resume: boolean;
                            idle_ttl: number;
                            pod_name: string | null;
                            runtime_generation: number;
                            resources: {
                                memory: string;
                                cpu: number | string;
                                disk: string;
                            };
                            bandwidth: {
                                egress_bandwidth_bytes_per_second: number;
                                ingress_bandwidth_bytes_per_second: number;
                                bandwidth_burst_bytes: number;
                            };
                            network: {
                                /** @enum {unknown} */
                                mode: "allow-all" | "block-all";
                            };
                            network_usage: {
                                egress: {
                                    passed_bytes: number;
                                    passed_packets: number;
                                    dropped_bytes: number;
                                    dropped_packets: number;
                                    waited_ms: number;
                                };
                                ingress: {
                                    passed_bytes: number;
                                    passed_packets: number;
                                    dropped_bytes: number;
                                    dropped_packets: number;
                                    waited_ms: number;
                                };
                            } | null;
                            webhook: {
                                url: string;
                                watch_dir: string | null;
                                /** @description a list of at most 100 globs of 1 to 256 characters */
                                watch_ignore: string[];
                                /** @description a list of at least one, none of them twice, of sandbox.ready, sandbox.paused, sandbox.resumed, sandbox.killed, sandbox.deleted, process.started, process.exited, process.crashed, file.modified, agent.event */
                                events: ("sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event")[];
                                has_secret: boolean;
                            } | null;
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
                    };
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
                "application/json": {
                    config: {
                        resources?: {
                            /** @description a size like 128Mi or 1Gi, from 128Mi to 2048Ti */
                            memory?: string;
                        };
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
                            id: string;
                            template_id: string;
                            team_id: string;
                            /** @enum {unknown} */
                            status: "starting" | "running" | "paused" | "terminating" | "failed" | "deleted";
                            failure: "runtime_lost" | null;
                            paused: boolean;
                            auto_resume: boolean;
                            idle_ttl: number;
                            pod_name: string | null;
                            runtime_generation: number;
                            resources: {
                                memory: string;
                                cpu: number | string;
                                disk: string;
                            };
                            bandwidth: {
                                egress_bandwidth_bytes_per_second: number;
                                ingress_bandwidth_bytes_per_second: number;
                                bandwidth_burst_bytes: number;
                            };
                            network: {
                                /** @enum {unknown} */
                                mode: "allow-all" | "block-all";
                            };
                            network_usage: {
                                egress: {
                                    passed_bytes: number;
                                    passed_packets: number;
                                    dropped_bytes: number;
                                    dropped_packets: number;
                                    waited_ms: number;
                                };
                                ingress: {
                                    passed_bytes: number;
                                    passed_packets: number;
                                    dropped_bytes: number;
                                    dropped_packets: number;
                                    waited_ms: number;
                                };
                            } | null;
                            webhook: {
                                url: string;
                                watch_dir: string | null;
                                /** @description a list of at most 100 globs of 1 to 256 characters */
                                watch_ignore: string[];
                                /** @description a list of at least one, none of them twice, of sandbox.ready, sandbox.paused, sandbox.resumed, sandbox.killed, sandbox.deleted, process.started, process.exited, process.crashed, file.modified, agent.event */
                                events: ("sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event")[];
                                has_secret: boolean;
                            } | null;
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
                    };
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
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            message: string;
                        };
                    };
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
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            sandbox_id: string;
                            template_id: string;
                            team_id: string;
                            pod_name: string | null;
                            /** @enum {unknown} */
                            status: "starting" | "running" | "paused" | "terminating" | "failed" | "deleted";
                            claimed_at: string | null;
                            expires_at: string | null;
                            hard_expires_at: string | null;
                            /** Format: date-time */
                            created_at: string;
                        };
                    };
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
                "application/json": {
                    duration?: number;
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
                            sandbox_id: string;
                            expires_at: string | null;
                            hard_expires_at: string | null;
                        };
                    };
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
                "application/json": {
                    reason?: string;
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
                            sandbox_id: string;
                            paused: boolean;
                            /** @enum {unknown} */
                            status: "starting" | "running" | "paused" | "terminating" | "failed";
                        };
                    };
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
                "application/json": {
                    reason?: string;
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
                            sandbox_id: string;
                            resumed: boolean;
                        };
                    };
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
                "application/json": {
                    config?: {
                        ttl?: number;
                        hard_ttl?: number;
                    };
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
                            source_sandbox_id: string;
                            sandbox: {
                                id: string;
                                template_id: string;
                                team_id: string;
                                /** @enum {unknown} */
                                status: "starting" | "running" | "paused" | "terminating" | "failed" | "deleted";
                                failure: "runtime_lost" | null;
                                paused: boolean;
                                auto_resume: boolean;
                                idle_ttl: number;
                                pod_name: string | null;
                                runtime_generation: number;
                                resources: {
                                    memory: string;
                                    cpu: number | string;
                                    disk: string;
                                };
                                bandwidth: {
                                    egress_bandwidth_bytes_per_second: number;
                                    ingress_bandwidth_bytes_per_second: number;
                                    bandwidth_burst_bytes: number;
                                };
                                network: {
                                    /** @enum {unknown} */
                                    mode: "allow-all" | "block-all";
                                };
                                network_usage: {
                                    egress: {
                                        passed_bytes: number;
                                        passed_packets: number;
                                        dropped_bytes: number;
                                        dropped_packets: number;
                                        waited_ms: number;
                                    };
                                    ingress: {
                                        passed_bytes: number;
                                        passed_packets: number;
                                        dropped_bytes: number;
                                        dropped_packets: number;
                                        waited_ms: number;
                                    };
                                } | null;
                                webhook: {
                                    url: string;
                                    watch_dir: string | null;
                                    /** @description a list of at most 100 globs of 1 to 256 characters */
                                    watch_ignore: string[];
                                    /** @description a list of at least one, none of them twice, of sandbox.ready, sandbox.paused, sandbox.resumed, sandbox.killed, sandbox.deleted, process.started, process.exited, process.crashed, file.modified, agent.event */
                                    events: ("sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event")[];
                                    has_secret: boolean;
                                } | null;
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
                        };
                    };
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    listProcesses: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    listContexts: {
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
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
        parameters: {
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
            };
        };
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                state?: "pending" | "delivered" | "failed" | "expired" | "foreign";
                event_type?: "sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted" | "process.started" | "process.exited" | "process.crashed" | "file.modified" | "agent.event";
                limit?: number;
                cursor?: number;
            };
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
            path: {
                /** @example sbx_0198a6c4-7b1e-7c3a-9f00-5d2e8b1a6c47 */
                sandbox_id: string;
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
    listEvents: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                event_type?: "sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted";
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
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            events: {
                                event_id: string;
                                /** @enum {unknown} */
                                event_type: "sandbox.ready" | "sandbox.paused" | "sandbox.resumed" | "sandbox.killed" | "sandbox.deleted";
                                sandbox_id: string;
                                sequence: number | null;
                                /** Format: date-time */
                                timestamp: string;
                                /** @description the exact body of the webhook's request */
                                body: string;
                            }[];
                            next_cursor: string;
                        };
                    };
                    "text/event-stream": string;
                };
            };
        };
    };
    listTeamDeliveries: {
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
                                sandbox_id: string;
                            }[];
                            next_cursor: string | null;
                        };
                    };
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
                            sandbox_id: string;
                        };
                    };
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
                            sandbox_id: string;
                        };
                    };
                };
            };
        };
    };
    replayTeamDeliveries: {
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
    listQuotas: {
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            team_id: string;
                            /** @enum {unknown} */
                            dimension: "active_sandboxes" | "sandbox_claims" | "api_requests" | "network_egress_bytes" | "network_ingress_bytes";
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
                        }[];
                    };
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
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            team_id: string;
                            /** @enum {unknown} */
                            dimension: "active_sandboxes" | "sandbox_claims" | "api_requests" | "network_egress_bytes" | "network_ingress_bytes";
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
                    };
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
                "application/json": {
                    kind?: ("capacity" | "rate") | null;
                    limit_value: number;
                    interval_ms?: number | null;
                    burst_value?: number | null;
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
                            team_id: string;
                            /** @enum {unknown} */
                            dimension: "active_sandboxes" | "sandbox_claims" | "api_requests" | "network_egress_bytes" | "network_ingress_bytes";
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
                    };
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
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            team_id: string;
                            /** @enum {unknown} */
                            dimension: "active_sandboxes" | "sandbox_claims" | "api_requests" | "network_egress_bytes" | "network_ingress_bytes";
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
                    };
                };
            };
        };
    };
    listUsageWindows: {
        parameters: {
            query?: {
                cursor?: string;
                limit?: number;
                window_type?: "sandbox.runtime_mib_milliseconds" | "sandbox.egress_bytes" | "sandbox.ingress_bytes";
            };
        };
        responses: {
            200: {
                content: {
                    "application/json": {
                        /** @constant */
                        success: true;
                        data: {
                            windows: {
                                window_id: string;
                                region_id: string;
                                cluster_id: string;
                                /** @enum {unknown} */
                                window_type: "sandbox.runtime_mib_milliseconds" | "sandbox.egress_bytes" | "sandbox.ingress_bytes";
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
                                unit: "mib_milliseconds" | "bytes";
                                /** Format: date-time */
                                recorded_at: string;
                            }[];
                            next_cursor: string;
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
