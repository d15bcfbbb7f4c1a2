import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = resolve(import.meta.dirname, '..');
const COLUMNS_MAX = 160;

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const readme = read('README.md');
const manifest = JSON.parse(read('package.json'));
const documents = ['.', '.github', 'fixtures', 'src'].flatMap((folder) =>
  filesIn(folder, folder !== '.').filter((path) => path.endsWith('.md')),
);
const contract = sectionsOf(read('src/contract/README.md'));

function filesIn(folder: string, is_deep: boolean): string[] {
  return readdirSync(join(ROOT, folder)).flatMap((name) => {
    const path = join(folder, name);
    if (!statSync(join(ROOT, path)).isDirectory()) return [path];
    return is_deep ? filesIn(path, true) : [];
  });
}

/** A document without its blocks of code, in which neither headings nor links count. */
function proseOf(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```$/gm, '');
}

/** What GitHub makes of a document's headings. */
function anchorsOf(path: string): Set<string> {
  const anchors = new Set<string>();
  for (const [, heading = ''] of proseOf(read(path)).matchAll(/^#+ (.+)$/gm)) {
    const slug = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    let anchor = slug;
    for (let repeated = 1; anchors.has(anchor); repeated++) anchor = `${slug}-${repeated}`;
    anchors.add(anchor);
  }
  return anchors;
}

/** Links to places in this repository. */
function linksOf(path: string): string[] {
  const prose = proseOf(read(path)).replaceAll(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target]) => target as string)
    .filter((target) => !/^[a-z]+:/.test(target));
}

function isBroken(path: string, link: string): boolean {
  const [file = '', anchor] = link.split('#');
  const target = file === '' ? path : relative(ROOT, resolve(ROOT, dirname(path), file));
  if (!existsSync(join(ROOT, target))) return true;
  return anchor !== undefined && !anchorsOf(target).has(anchor);
}

/** The numbered sections of the contract, each with its text. */
function sectionsOf(text: string): Map<string, string> {
  const parts = text.split(/^## (\d+)\. /m).slice(1);
  return new Map(parts.flatMap((part, i) => (i % 2 === 0 ? [[part, parts[i + 1] ?? '']] : [])));
}

/** Every "contract section N" of a source file, with what is cited in quotation marks from that section. */
function citationsOf(path: string): { section: string; named: string[] }[] {
  const text = read(path).replaceAll(/\s*\n\s*(\*|\/\/) ?/g, ' ');
  return [...text.matchAll(/contract,? sections? (\d)([^.\n]*)/gi)].flatMap(([, section = '', rest = '']) => {
    const [own = '', ...others] = rest.split(/(?:,? and|;) section (?=\d)|;/);
    const also = [...own.matchAll(/ and (\d)\b/g), ...others.map((other) => other.match(/^(\d)/))];
    return [
      { section, named: [...own.matchAll(/"([^"]+)"/g)].map(([, name]) => name as string) },
      ...also.flatMap((match) => (match?.[1] ? [{ section: match[1], named: [] }] : [])),
    ];
  });
}

describe('the README', () => {
  it('shows the tested receiver in Node as it is', () => {
    expect(readme).toContain(`\`\`\`js\n${read('fixtures/receivers/node.mjs')}\`\`\``);
  });

  it('names every dependency with its reason', () => {
    const names = [
      ...Object.keys(manifest.dependencies),
      ...Object.keys(manifest.optionalDependencies),
      ...Object.keys(manifest.devDependencies).filter((name) => !name.startsWith('@types/')),
    ];
    expect(names.filter((name) => !readme.includes(`\`${name}\``))).toEqual([]);
  });
});

describe('the documents', () => {
  it('are all found', () => {
    expect(documents).toEqual(
      expect.arrayContaining([
        'README.md',
        'rootfs-layout.md',
        '.github/CHANGELOG.md',
        '.github/CONTRIBUTING.md',
        'fixtures/receivers/README.md',
        'src/README.md',
        'src/contract/README.md',
        'src/daemon/README.md',
        'src/manager/README.md',
      ]),
    );
  });

  it.each(documents)('have only links that lead somewhere: %s', (path) => {
    expect(linksOf(path).filter((link) => isBroken(path, link))).toEqual([]);
  });
});

describe('the map of the source', () => {
  it('names only files that are there', () => {
    const [text = ''] = read('src/README.md').split('## Glossary');
    const named = [...text.matchAll(/`((?:\.\.\/)?[a-z][\w.-]*\/[\w./-]*\.(?:ts|md))`/g)].map(
      ([, path]) => path as string,
    );
    expect(named.length).toBeGreaterThan(50);
    const isThere = (path: string) => ['src', '.'].some((folder) => existsSync(join(ROOT, folder, path)));
    expect(named.filter((path) => !isThere(path))).toEqual([]);
  });
});

describe('the contract', () => {
  it('has the sections that code and tests cite, with what they name', () => {
    const sources = ['src', 'bin', 'test'].flatMap((folder) => filesIn(folder, true));
    const cited = sources
      .filter((path) => path.endsWith('.ts') && path !== 'test/readme.test.ts')
      .flatMap((path) => citationsOf(path).map((citation) => ({ path, ...citation })));
    expect(cited.length).toBeGreaterThan(100);
    const wrong = cited.filter(({ section, named }) => {
      const text = contract.get(section);
      return text === undefined || named.some((name) => !text.includes(name));
    });
    expect(wrong).toEqual([]);
  });

  it(`has no line above ${COLUMNS_MAX} columns`, () => {
    const lines = read('src/contract/README.md').split('\n');
    expect(lines.filter((line) => line.length > COLUMNS_MAX)).toEqual([]);
  });
});
