import type { Terminal } from './context.ts';
import { EXIT, type ExitCode } from './failure.ts';

/** The shells that completion scripts are made for. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/** One of `SHELLS`. */
export type Shell = (typeof SHELLS)[number];

/** An option, for completion. `value` is the name of its argument, null for a flag; `values` are its choices. */
export interface OptionOutline {
  flags: string[];
  description: string;
  value: string | null;
  values: string[];
}

/** A command, for completion. `values` are the choices of its arguments. */
export interface CommandOutline {
  name: string;
  description: string;
  options: OptionOutline[];
  values: string[];
}

/** Prints the completion script for a shell. `common` are the options that every command takes. */
export async function completion(
  { out }: Terminal,
  shell: Shell,
  name: string,
  commands: CommandOutline[],
  common: OptionOutline[],
): Promise<ExitCode> {
  const withCommon = commands.map((command) => ({ ...command, options: [...command.options, ...common] }));
  await out.write(SCRIPTS[shell](name, withCommon, common));
  return EXIT.ok;
}

type Script = (name: string, commands: CommandOutline[], common: OptionOutline[]) => string;

const SCRIPTS: Record<Shell, Script> = { bash, zsh, fish };

function bash(name: string, commands: CommandOutline[], common: OptionOutline[]): string {
  const flags = (options: OptionOutline[]) => options.flatMap((option) => option.flags).join(' ');
  const valueCases = commands.flatMap((command) =>
    command.options
      .filter((option) => option.value !== null)
      .map((option) => {
        const pattern = option.flags.map((flag) => `'${command.name} ${flag}'`).join('|');
        return `    ${pattern}) ${bashReply(option)} ;;`;
      }),
  );
  const wordCases = commands.map(
    (command) => `    ${command.name}) words='${[flags(command.options), ...command.values].join(' ')}' ;;`,
  );
  const names = commands.map((command) => command.name);
  return `# ${name} completion bash >> ~/.bash_completion
_${name}() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} command= words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case \${COMP_WORDS[i]} in ${names.join('|')}) command=\${COMP_WORDS[i]}; break ;; esac
  done
  case "$command $previous" in
${valueCases.join('\n')}
  esac
  case $command in
${wordCases.join('\n')}
    *) words='${[...names, flags(common)].join(' ')}' ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _${name} ${name}
`;
}

function bashReply({ value, values }: OptionOutline): string {
  if (values.length > 0) return `COMPREPLY=($(compgen -W '${values.join(' ')}' -- "$word")); return`;
  return isPath(value) ? 'COMPREPLY=($(compgen -f -- "$word")); return' : 'return';
}

function zsh(name: string, commands: CommandOutline[], common: OptionOutline[]): string {
  const argument = ({ flags, description, value, values }: OptionOutline) => {
    const what =
      value === null
        ? ''
        : `:${value}:${values.length > 0 ? `(${values.join(' ')})` : isPath(value) ? '_files' : ''}`;
    return flags.map((flag) => `'${flag}[${zshText(description)}]${what}'`).join(' ');
  };
  const cases = commands.map((command) => {
    const values = command.values.length > 0 ? ` '*:argument:(${command.values.join(' ')})'` : '';
    return `        ${command.name}) _arguments ${command.options.map(argument).join(' ')}${values} ;;`;
  });
  const names = commands.map((command) => `'${command.name}:${zshText(command.description)}'`);
  return `#compdef ${name}
# ${name} completion zsh > "\${fpath[1]}/_${name}"
_${name}() {
  local context state line
  local -a commands=(${names.join(' ')})
  _arguments -C ${common.map(argument).join(' ')} '1:command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $words[1] in
${cases.join('\n')}
      esac ;;
  esac
}
if [ "$funcstack[1]" = _${name} ]; then _${name} "$@"; else compdef _${name} ${name}; fi
`;
}

/** The text without the characters that end a quoted description or a field in it. */
function zshText(text: string): string {
  return text.replace(/[[\]:'\\]/g, ' ');
}

function fish(name: string, commands: CommandOutline[]): string {
  const lines = [
    `# ${name} completion fish > ~/.config/fish/completions/${name}.fish`,
    `complete -c ${name} -f`,
  ];
  for (const command of commands) {
    const seen = `-n '__fish_seen_subcommand_from ${command.name}'`;
    lines.push(
      `complete -c ${name} -n __fish_use_subcommand -a ${command.name} -d '${fishText(command.description)}'`,
    );
    if (command.values.length > 0) lines.push(`complete -c ${name} ${seen} -a '${command.values.join(' ')}'`);
    for (const option of command.options) {
      const flags = option.flags.map((flag) =>
        flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
      );
      const value =
        option.value === null
          ? ''
          : option.values.length > 0
            ? ` -xa '${option.values.join(' ')}'`
            : isPath(option.value)
              ? ' -rF'
              : ' -x';
      lines.push(
        `complete -c ${name} ${seen} ${flags.join(' ')}${value} -d '${fishText(option.description)}'`,
      );
    }
  }
  return `${lines.join('\n')}\n`;
}

function fishText(text: string): string {
  return text.replace(/['\\]/g, ' ');
}

function isPath(value: string | null): boolean {
  return value === 'path' || value === 'dir';
}
