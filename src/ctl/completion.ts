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

/** The completion script of a program for a shell. `own` are the options that it takes without a command. */
export function completionScript(
  shell: Shell,
  name: string,
  commands: CommandOutline[],
  own: OptionOutline[],
): string {
  return SCRIPTS[shell](name, commands.map(withDistinctOptions), own);
}

/** Nested commands may take the same options. */
function withDistinctOptions(command: CommandOutline): CommandOutline {
  const by_flags = new Map(command.options.map((option) => [option.flags.join(), option]));
  return { ...command, options: [...by_flags.values()] };
}

type Script = (name: string, commands: CommandOutline[], own: OptionOutline[]) => string;

const SCRIPTS: Record<Shell, Script> = { bash, zsh, fish };

function bash(name: string, commands: CommandOutline[], own: OptionOutline[]): string {
  const flags = (options: OptionOutline[]) => options.flatMap((option) => option.flags).join(' ');
  const valueCases = [...commands, { name: '', options: own }].flatMap((command) =>
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
    *) words='${[...names, flags(own)].join(' ')}' ;;
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

function zsh(name: string, commands: CommandOutline[], own: OptionOutline[]): string {
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
  _arguments -C ${own.map(argument).join(' ')} '1:command:->command' '*::argument:->argument'
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

function fish(name: string, commands: CommandOutline[], own: OptionOutline[]): string {
  const lines = [
    `# ${name} completion fish > ~/.config/fish/completions/${name}.fish`,
    `complete -c ${name} -f`,
  ];
  const offer = (when: string, option: OptionOutline) => {
    const flags = option.flags.map((flag) =>
      flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
    );
    lines.push(
      `complete -c ${name} ${when} ${flags.join(' ')}${fishValue(option)} -d '${fishText(option.description)}'`,
    );
  };
  for (const option of own) offer('-n __fish_use_subcommand', option);
  for (const command of commands) {
    const seen = `-n '__fish_seen_subcommand_from ${command.name}'`;
    lines.push(
      `complete -c ${name} -n __fish_use_subcommand -a ${command.name} -d '${fishText(command.description)}'`,
    );
    if (command.values.length > 0) lines.push(`complete -c ${name} ${seen} -a '${command.values.join(' ')}'`);
    for (const option of command.options) offer(seen, option);
  }
  return `${lines.join('\n')}\n`;
}

function fishValue({ value, values }: OptionOutline): string {
  if (value === null) return '';
  if (values.length > 0) return ` -xa '${values.join(' ')}'`;
  return isPath(value) ? ' -rF' : ' -x';
}

function fishText(text: string): string {
  return text.replace(/['\\]/g, ' ');
}

function isPath(value: string | null): boolean {
  return value === 'path' || value === 'dir' || value === 'file.yaml';
}
