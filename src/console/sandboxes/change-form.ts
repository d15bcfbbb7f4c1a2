import type { ChangeConfig, ManagedSandbox } from '../api/managed-sandbox.ts';
import { durationOf, environmentOf, sizeProblem } from './claim-form.ts';

/** What is typed into the form of a change; a duration that is empty stays as it is. */
export interface ChangeForm {
  memory: string;
  ttl: string;
  hard_ttl: string;
  idle_ttl: string;
  auto_resume: boolean;
  /** Whether the variables below replace those of the sandbox. */
  sets_env: boolean;
  env_vars: string;
}

/** The form of a sandbox as it is. */
export function formOf({ resources, auto_resume }: ManagedSandbox): ChangeForm {
  const durations = { ttl: '', hard_ttl: '', idle_ttl: '' };
  return { ...durations, memory: resources.memory, auto_resume, sets_env: false, env_vars: '' };
}

/** What is wrong with a form, by field. */
export type ChangeFaults = Partial<Record<keyof ChangeForm, string>>;

/** What a form changes in a sandbox, and what the manager would refuse in it. Contract section 7, `PUT /api/v1/sandboxes/{id}`. */
export function changeOf(
  form: ChangeForm,
  sandbox: ManagedSandbox,
): { config: ChangeConfig; faults: ChangeFaults } {
  const faults: ChangeFaults = {};
  const config: ChangeConfig = {};
  const memory = form.memory.trim();
  const bad_memory = sizeProblem(memory);
  if (memory !== sandbox.resources.memory) {
    if (bad_memory) faults.memory = bad_memory;
    config.resources = { memory };
  }
  for (const name of ['ttl', 'hard_ttl', 'idle_ttl'] as const) {
    const { seconds, wrong } = durationOf(form[name]);
    if (wrong) faults[name] = wrong;
    if (seconds !== null) config[name] = seconds;
  }
  if (form.auto_resume !== sandbox.auto_resume) config.auto_resume = form.auto_resume;
  if (form.sets_env) {
    const { pairs, wrong } = environmentOf(form.env_vars);
    if (wrong) faults.env_vars = wrong;
    config.env_vars = pairs;
  }
  return { config, faults };
}
