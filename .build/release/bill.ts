import { createHash } from 'node:crypto';

/** A CycloneDX document of npm, as far as it is changed here. */
export interface Bill {
  serialNumber?: string;
  metadata: { timestamp?: string; component: { name: string; type: string } & Record<string, unknown> };
  components: Component[];
  dependencies: { ref: string; dependsOn?: string[] }[];
}

interface Component {
  'bom-ref': string;
  name: string;
  version: string;
  scope?: string;
  properties?: { name: string; value: string }[];
}

/** What a release is told by: the commit's hash and time. */
export interface Commit {
  hash: string;
  time_s: number;
}

const DEVELOPMENT = 'cdx:npm:package:development';
const BUNDLED = 'cdx:npm:package:bundled';

/**
 * The bill of materials of a release, from what npm says of the whole lockfile: the packages that are installed with it,
 * and those that are in its bundles (`name@version`), which npm takes for development alone. The same commit gives the
 * same document, whenever and wherever it is made. Throws where a bundled package is not in the lockfile.
 */
export function releaseBill(all: Bill, name: string, bundled: ReadonlySet<string>, commit: Commit): Bill {
  const identityOf = (component: Component) => `${component.name}@${component.version}`;
  const known = new Set(all.components.map(identityOf));
  const unknown = [...bundled].filter((each) => !known.has(each));
  if (unknown.length > 0) throw new Error(`not in the lockfile: ${unknown.join(', ')}`);
  const components = all.components.flatMap((component) => {
    const others = (component.properties ?? []).filter((property) => property.name !== DEVELOPMENT);
    if (!bundled.has(identityOf(component))) {
      return others.length === component.properties?.length || !component.properties ? [component] : [];
    }
    return [{ ...component, scope: 'required', properties: [...others, { name: BUNDLED, value: 'true' }] }];
  });
  const own = String(all.metadata.component['bom-ref']);
  const refs = new Set([own, ...components.map((component) => component['bom-ref'])]);
  return {
    ...all,
    serialNumber: `urn:uuid:${serialOf(commit.hash)}`,
    metadata: {
      ...all.metadata,
      timestamp: new Date(commit.time_s * 1000).toISOString(),
      // npm takes the name of the folder.
      component: { ...all.metadata.component, name, type: 'application' },
    },
    components,
    dependencies: all.dependencies
      .filter(({ ref }) => refs.has(ref))
      .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.filter((each) => refs.has(each)) })),
  };
}

/** The packages, as `name@version`, that a text of licences tells: see `licenceText`. */
export function packagesIn(licences: string): string[] {
  return [...licences.matchAll(/^-{78}\n\n(\S+) (\S+) \(/gm)].map(
    ([, name, version]) => `${name}@${version}`,
  );
}

/** A UUID of the custom kind (RFC 9562, version 8) that names the commit. */
function serialOf(hash: string): string {
  const hex = createHash('sha256').update(`sandboxd ${hash}`).digest('hex');
  const variant = ((Number.parseInt(hex[16] ?? '0', 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}
