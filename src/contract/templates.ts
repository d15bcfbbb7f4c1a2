/** What a sandbox of a template is made of in a cluster. Source: contract section 7, "Kubernetes". */
export interface SandboxTemplate {
  /** The image that the sandbox sees as its root; with glibc, `/bin/sh` and `mkfifo`. */
  readonly image: string;
  /** The secret to pull it with; null: none. */
  readonly image_pull_secret: string | null;
  readonly runtime_class: string | null;
  /** The class of its volume; null: the cluster's default. */
  readonly storage_class: string | null;
  /** User and group id of everything in it. */
  readonly user: number;
  /** The folder on its volume, which its forks get a copy of. */
  readonly work_dir: string;
  /** Whether its user ids are its own, and mean nothing on the node. */
  readonly user_namespace: boolean;
  /** Whether its whole root is on its volume, and in its forks; otherwise `work_dir` alone. */
  readonly persistent_root: boolean;
  /** What it may write outside of its volume, in MiB: reserved on its node, and its end if it writes more. */
  readonly ephemeral_mib: number;
  /** What a claim gets that does not say otherwise, in a claim's own words. */
  readonly resources: { readonly memory?: string; readonly cpu?: string | number; readonly disk?: string };
  /** What waits for claims of just these resources; null: nothing. */
  readonly pool: TemplatePool | null;
}

/** Pods of a template that are made before anybody claims them. */
export interface TemplatePool {
  /** How many of them wait. */
  readonly size: number;
  readonly memory_mib: number;
  readonly cpu_millis: number;
  readonly disk_mib: number;
}

/** By name. */
export type SandboxTemplates = ReadonlyMap<string, SandboxTemplate>;

/** The values of `--runtime`. Source: contract section 7. */
export const RUNTIMES = ['local', 'local-unsafe', 'kubernetes', 'none'] as const;

/** One of `RUNTIMES`. */
export type RuntimeKind = (typeof RUNTIMES)[number];

/** The values of `--kubernetes-injection`. Source: contract section 7. */
export const INJECTIONS = ['auto', 'image-volume', 'init-container'] as const;

/** One of `INJECTIONS`. */
export type InjectionOption = (typeof INJECTIONS)[number];
