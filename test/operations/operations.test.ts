import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { startConsumer } from '../support/consumer.ts';
import { startDaemon } from '../support/daemon/running-daemon.ts';
import { eventually } from '../support/eventually.ts';
import { startManager } from '../support/manager/running-manager.ts';
import { scratchFolder } from '../support/scratch.ts';

const FOLDER = join(import.meta.dirname, '../../fixtures/operations');
const DASHBOARDS = ['sandboxd-dashboard.json', 'sandbox-manager-dashboard.json'];
const HAS_PROMTOOL = spawnSync('promtool', ['--version']).status === 0;
const WITHIN = { timeout: 60_000 };

/** What Prometheus itself adds to what it scrapes. */
const TARGET_LABELS = ['instance', 'job'];

interface Rule {
  alert: string;
  expr: string;
  labels: { severity: string };
  annotations: { summary: string; description: string };
}

interface Panel {
  type: string;
  title: string;
  targets?: { expr: string; legendFormat: string }[];
}

const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8');
const rules = (parse(read('alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const panels = DASHBOARDS.flatMap((name) => (JSON.parse(read(name)) as { panels: Panel[] }).panels);
const charts = panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({ of: title, expr, shown: legendFormat })),
);
const alerts = rules.map(({ alert, expr, annotations: { summary, description } }) => ({
  of: alert,
  expr,
  shown: `${summary} ${description}`,
}));

/** The labels of every series of a scrape, by its name. */
function seriesOf(text: string): Map<string, Set<string>> {
  const series = new Map<string, Set<string>>();
  for (const line of text.split('\n')) {
    const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (name === undefined) continue;
    const names = type === 'histogram' ? ['_bucket', '_sum', '_count'].map((end) => name + end) : [name];
    for (const each of names) series.set(each, new Set(TARGET_LABELS));
  }
  for (const line of text.split('\n')) {
    const [, name = '', labels = ''] = /^(\w+)\{(.*)\} \S+$/.exec(line) ?? [];
    for (const [, label = ''] of labels.matchAll(/(\w+)="/g)) series.get(name)?.add(label);
  }
  return series;
}

/** The names of the programs' series that an expression uses. */
function usedIn(expr: string): string[] {
  return [...new Set(expr.match(/\b(sandboxd|sandbox_manager)_\w+/g) ?? [])];
}

/** The labels that an expression selects or groups by, and that its text shows. */
function labelsIn(expr: string, shown: string): string[] {
  const selected = [...expr.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label = '']) => label);
  const grouped = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap(([, list = '']) => list.split(/,\s*/));
  const named = [...shown.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g)].map(([, label = '']) => label);
  return [...new Set([...selected, ...grouped, ...named])].filter((label) => label !== '');
}

/** What both programs show at /metrics after each has done some of everything. */
async function scrapes(): Promise<string> {
  const consumer = await startConsumer();
  const { publish, call } = await startDaemon('--webhook-url', consumer.url, '--watch-dir', scratchFolder());
  await publish('{}');
  const { client } = await startManager(`sqlite:${scratchFolder()}/manager.db`, {
    file: { default_team_quotas: [{ dimension: 'active_sandboxes', limit_value: 5 }] },
  });
  const team = await client('team_1', 'sandboxes:write');
  await team.claim();
  const id = await team.claim({ webhook: { url: consumer.url } });
  await team.call('DELETE', `/api/v1/sandboxes/${id}`);
  return eventually(async () => {
    const daemon = (await call('GET', '/metrics')).text;
    const manager = await (await fetch(`${team.url}/metrics`)).text();
    expect(daemon).toContain('sandboxd_delivery_attempts_total{outcome="delivered"');
    expect(manager).toContain('sandbox_manager_delivery_attempts_total{outcome="delivered"');
    expect(manager).toContain('sandbox_manager_transitions_total{verb="delete"');
    return daemon + manager;
  }, WITHIN);
}

describe('the dashboards and alert rules', () => {
  it('use only series of running programs, with the labels that these have, and show every metric', async () => {
    const text = await scrapes();
    const series = seriesOf(text);
    for (const { of, expr, shown } of [...charts, ...alerts]) {
      const used = usedIn(expr);
      expect(
        used.filter((name) => !series.has(name)),
        of,
      ).toEqual([]);
      const known = new Set([...TARGET_LABELS, ...used.flatMap((name) => [...(series.get(name) ?? [])])]);
      expect(
        labelsIn(expr, shown).filter((label) => !known.has(label)),
        of,
      ).toEqual([]);
    }
    expect(charts.length + alerts.length).toBeGreaterThan(50);
    const charted = new Set(
      charts.flatMap(({ expr }) => usedIn(expr)).map((name) => name.replace(/_(bucket|sum|count)$/, '')),
    );
    const named = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
    expect(named.filter((name) => !charted.has(name))).toEqual([]);
  });

  it('have a severity, a summary and what to do in each alert, and no name twice', () => {
    for (const { alert, labels, annotations } of rules) {
      expect(['critical', 'warning', 'info'], alert).toContain(labels.severity);
      expect(annotations.summary.length * annotations.description.length, alert).toBeGreaterThan(0);
    }
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
  });

  it.skipIf(!HAS_PROMTOOL)('are what Prometheus parses, as promtool (Debian: prometheus) says', () => {
    const folder = scratchFolder();
    const recorded = charts.map(({ expr }, i) => ({
      record: `chart:${i}`,
      expr: expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*'),
    }));
    const file = join(folder, 'charts.yml');
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'charts', rules: recorded }] }));
    const { stdout, stderr, status } = spawnSync(
      'promtool',
      ['check', 'rules', join(FOLDER, 'alerts.yml'), file],
      {
        encoding: 'utf8',
      },
    );
    expect([status, stdout + stderr]).toEqual([0, expect.stringContaining('SUCCESS')]);
  });
});
