import type { Guides } from './help.ts';

/** Of `sandboxctl`. */
export const SANDBOXCTL_GUIDES: Guides = {
  '': {
    examples: ['run -- npm test', 'sandbox list --manager https://sandboxes.example.com --token-file token'],
    related: ['help COMMAND', 'sandboxd --help', 'sandbox-manager --help'],
  },
  publish: {
    examples: ['publish \'{"step":"tests passed"}\'', 'publish --idempotency-key build-7 - < payload.json'],
    related: ['show', 'deliveries', 'test'],
  },
  listen: {
    examples: [
      'listen --port 8787 --secret-file secret',
      'listen --secret-file secret --forward http://localhost:3000/hooks',
    ],
    related: ['test', 'events'],
  },
  deliveries: {
    examples: ['deliveries --state failed', 'deliveries --event-type agent.event --watch'],
    related: ['show', 'replay', 'events'],
  },
  show: { examples: ['show EVENT_ID', 'show EVENT_ID --json'], related: ['deliveries', 'replay'] },
  replay: { examples: ['replay EVENT_ID', 'replay --state failed'], related: ['deliveries', 'discard'] },
  discard: { examples: ['discard EVENT_ID', 'discard --state failed'], related: ['deliveries', 'replay'] },
  test: { examples: ['test', 'test --json'], related: ['listen', 'status', 'doctor'] },
  events: {
    examples: ['events --follow --since 100', 'events --team --follow --json'],
    related: ['deliveries', 'listen'],
  },
  status: { examples: ['status', 'status --json'], related: ['doctor', 'deliveries', 'ps'] },
  run: {
    examples: ['run -- npm test', 'run --timeout 5m --env CI=1 -- sh -c "make && make check"'],
    related: ['ps', 'logs', 'stop'],
  },
  ps: { examples: ['ps', 'ps --json'], related: ['logs', 'signal', 'stop'] },
  logs: {
    examples: ['logs --follow PROCESS_ID', 'logs --stream stderr --tail 20 PROCESS_ID'],
    related: ['ps'],
  },
  signal: { examples: ['signal PROCESS_ID SIGHUP', 'signal PROCESS_ID SIGUSR1'], related: ['ps', 'stop'] },
  stop: { examples: ['stop PROCESS_ID', 'stop --grace-ms 1000 PROCESS_ID'], related: ['ps', 'signal'] },
  ls: { examples: ['ls -l /workspace', 'ls --depth 3 /workspace --json'], related: ['stat', 'cp', 'watch'] },
  cat: { examples: ['cat /etc/hosts', 'cat /workspace/a.log /workspace/b.log'], related: ['cp', 'ls'] },
  cp: {
    examples: ['cp -r ./src :/workspace/src', 'cp :/workspace/report.pdf .'],
    related: ['ls', 'cat', 'mv'],
  },
  mv: { examples: ['mv /workspace/a /workspace/b', 'mv -f /tmp/new /etc/motd'], related: ['cp', 'rm'] },
  rm: { examples: ['rm /tmp/file', 'rm -rf /workspace/build'], related: ['mv', 'mkdir'] },
  mkdir: { examples: ['mkdir /workspace', 'mkdir -p --mode 0700 /home/app/.cache'], related: ['cp', 'rm'] },
  stat: { examples: ['stat /workspace', 'stat /etc/hosts --json'], related: ['ls'] },
  watch: { examples: ['watch -r /workspace', 'watch /tmp --json'], related: ['ls', 'events'] },
  sandbox: {
    examples: ['sandbox claim --memory 1Gi --ttl 1h', 'sandbox list --status running'],
    related: ['quota', 'usage', 'run', 'ps'],
  },
  'sandbox list': {
    examples: ['sandbox list --metadata branch:main', 'sandbox list --status paused --limit 500 --json'],
    related: ['sandbox show', 'sandbox claim'],
  },
  'sandbox show': {
    examples: ['sandbox show SANDBOX_ID', 'sandbox show SANDBOX_ID --json'],
    related: ['sandbox list', 'ps', 'deliveries'],
  },
  'sandbox claim': {
    examples: [
      'sandbox claim --ttl 1h --metadata branch:main --env CI=1',
      'sandbox claim --webhook-url https://example.com/hooks --webhook-secret-file secret --watch-dir /work',
    ],
    related: ['sandbox list', 'run', 'cp'],
  },
  'sandbox pause': {
    examples: ['sandbox pause SANDBOX_ID', 'sandbox pause --no-memory SANDBOX_ID'],
    related: ['sandbox resume', 'sandbox fork'],
  },
  'sandbox resume': {
    examples: ['sandbox resume SANDBOX_ID', 'sandbox resume --sandbox SANDBOX_ID'],
    related: ['sandbox pause', 'sandbox fork'],
  },
  'sandbox fork': {
    examples: ['sandbox fork SANDBOX_ID', 'sandbox fork SANDBOX_ID --ttl 1h --hard-ttl 24h'],
    related: ['sandbox resume', 'sandbox show'],
  },
  'sandbox refresh': {
    examples: ['sandbox refresh SANDBOX_ID', 'sandbox refresh SANDBOX_ID --duration 30m'],
    related: ['sandbox show'],
  },
  'sandbox delete': {
    examples: ['sandbox delete SANDBOX_ID', 'sandbox delete SANDBOX_ID OTHER_ID --json'],
    related: ['sandbox pause', 'sandbox list'],
  },
  quota: { examples: ['quota', 'quota active_sandboxes --json'], related: ['usage', 'sandbox list'] },
  usage: {
    examples: ['usage --limit 1000 --json', 'usage --type sandbox.egress_bytes'],
    related: ['quota', 'sandbox list'],
  },
  doctor: {
    examples: ['doctor', 'doctor --webhook-url https://example.com/hooks --watch-dir /workspace'],
    related: ['status', 'test'],
  },
  console: {
    examples: ['console', 'console --no-open --port 8900'],
    related: ['status', 'ps', 'deliveries'],
  },
  completion: { examples: ['completion bash >> ~/.bash_completion', 'completion fish'], related: [] },
};

/** Of `sandboxd`. */
export const SANDBOXD_GUIDES: Guides = {
  '': {
    examples: [
      '--state-dir ./state --webhook-url http://localhost:8787',
      '--webhook-url https://example.com/hooks --webhook-secret-file secret --watch-dir /workspace -- python3 agent.py',
    ],
    related: ['completion', 'sandboxctl doctor', 'sandboxctl --help'],
  },
  completion: { examples: ['completion bash >> ~/.bash_completion', 'completion fish'], related: [] },
};

/** Of `sandbox-manager`. */
export const MANAGER_GUIDES: Guides = {
  '': {
    examples: [
      '--data-dir /var/lib/sandboxes --database sqlite:/var/lib/sandboxes.db',
      '--config manager.yaml --replicas 2 --listen 127.0.0.1:8081',
    ],
    related: ['status', 'token create', 'quota list', 'completion'],
  },
  status: {
    examples: ['status --token-file admin-token', 'status --config manager.yaml --json'],
    related: ['token create', 'orphans list'],
  },
  token: {
    examples: ['token create --team team_1 --scope sandboxes:write', 'token list'],
    related: ['token create', 'token list', 'token revoke'],
  },
  'token create': {
    examples: [
      'token create --team team_1 --scope sandboxes:write --scope webhooks:read',
      'token create --team team_1 --scope admin --database postgres://manager@127.0.0.1/manager',
    ],
    related: ['token list', 'token revoke'],
  },
  'token list': { examples: ['token list', 'token list --json'], related: ['token create', 'token revoke'] },
  'token revoke': {
    examples: ['token revoke ID', 'token revoke ID --config manager.yaml'],
    related: ['token list', 'token create'],
  },
  prune: {
    examples: ['prune --usage-before 2026-01-01 --dry-run', 'prune --tokens-before 2026-01-01 --teams'],
    related: ['token list'],
  },
  orphans: {
    examples: ['orphans list', 'orphans adopt ID'],
    related: ['orphans list', 'orphans adopt', 'orphans end', 'orphans give-up'],
  },
  'orphans list': {
    examples: ['orphans list --config manager.yaml', 'orphans list --json'],
    related: ['orphans adopt', 'orphans end', 'orphans give-up'],
  },
  'orphans adopt': {
    examples: ['orphans adopt ID', 'orphans adopt ID ID --config manager.yaml'],
    related: ['orphans list', 'orphans end'],
  },
  'orphans end': {
    examples: ['orphans end ID', 'orphans end ID ID --config manager.yaml'],
    related: ['orphans list', 'orphans adopt'],
  },
  'orphans give-up': {
    examples: ['orphans give-up ID', 'orphans give-up ID --config manager.yaml'],
    related: ['orphans list'],
  },
  quota: {
    examples: ['quota list --team team_1', 'quota set active_sandboxes --team team_1 --limit-value 10'],
    related: ['quota list', 'quota set', 'quota unset'],
  },
  'quota list': {
    examples: ['quota list --team team_1', 'quota list --team team_1 --json'],
    related: ['quota set', 'quota unset'],
  },
  'quota set': {
    examples: [
      'quota set active_sandboxes --team team_1 --limit-value 10',
      'quota set sandbox_claims --team team_1 --limit-value 5 --interval-ms 1000 --burst-value 20',
    ],
    related: ['quota list', 'quota unset'],
  },
  'quota unset': {
    examples: [
      'quota unset active_sandboxes --team team_1',
      'quota unset sandbox_claims --team team_1 --json',
    ],
    related: ['quota list', 'quota set'],
  },
  completion: { examples: ['completion bash >> ~/.bash_completion', 'completion fish'], related: [] },
};
