/** What every object of the cluster has, as far as this runtime uses it. */
export interface Meta {
  name: string;
  uid: string;
  resourceVersion: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
}

/** An object of the cluster. */
export interface KubernetesObject {
  metadata: Meta;
}

/** What has become of a container. */
export interface ContainerStatus {
  name: string;
  /** The image that it runs, as the node tells it from others. */
  imageID?: string;
  /** What the node has given it. */
  resources?: { limits?: { memory?: string } };
  state?: {
    waiting?: { reason?: string; message?: string };
    running?: object;
    terminated?: { exitCode: number; reason?: string; message?: string };
  };
}

/** A condition of a Pod. */
export interface PodCondition {
  type: string;
  status: 'True' | 'False' | 'Unknown';
  reason?: string;
  message?: string;
}

/** A Pod, as far as this runtime reads it. */
export interface Pod extends KubernetesObject {
  spec: {
    nodeName?: string;
    hostUsers?: boolean;
    containers?: { name: string; image?: string; resources?: object }[];
  };
  status?: {
    phase?: 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
    podIP?: string;
    reason?: string;
    message?: string;
    conditions?: PodCondition[];
    initContainerStatuses?: ContainerStatus[];
    containerStatuses?: ContainerStatus[];
  };
}

/** A volume claim, as far as this runtime reads it. */
export interface VolumeClaim extends KubernetesObject {
  status?: { phase?: 'Pending' | 'Bound' | 'Lost' };
}

/** A secret; its values are in base64. */
export interface Secret extends KubernetesObject {
  data?: Record<string, string>;
}

/** Chooses objects by their labels. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: {
    key: string;
    operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    values?: string[];
  }[];
}

/** Who may be reached or reach, of a network policy's rule. */
export interface NetworkPeer {
  ipBlock?: { cidr: string; except?: string[] | null } | null;
  namespaceSelector?: LabelSelector | null;
  podSelector?: LabelSelector | null;
}

/** A network policy, as far as this runtime reads it. */
export interface NetworkPolicy extends KubernetesObject {
  spec: {
    podSelector: LabelSelector;
    policyTypes?: string[];
    ingress?: { from?: NetworkPeer[] | null }[];
    egress?: { to?: NetworkPeer[] | null }[];
  };
}

/** What the cluster tells about an object. */
export interface ClusterEvent extends KubernetesObject {
  type?: 'Normal' | 'Warning';
  reason?: string;
  message?: string;
}

/** A list of objects. */
export interface ObjectList<Kind> {
  metadata: { resourceVersion: string; continue?: string };
  items: Kind[];
}

/** A line of a watch. */
export interface WatchEvent<Kind> {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  object: Kind;
}
