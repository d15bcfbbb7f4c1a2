import { type Asked, COMPLETE } from './complete/asked.ts';

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

/**
 * The completion script of a program for a shell. `own` are the options that it takes without a command; for what is
 * `asked` the script starts the program, which prints a candidate on each line.
 */
export function completionScript(
  shell: Shell,
  name: string,
  commands: CommandOutline[],
  own: OptionOutline[],
  asked: Asked = { commands: [], options: [] },
): string {
  return SCRIPTS[shell](name, commands.map(withDistinctOptions), own, asked);
}

/** Nested commands may take the same options. */
function withDistinctOptions(command: CommandOutline): CommandOutline {
  const by_flags = new Map(command.options.map((option) => [option.flags.join(), option]));
  return { ...command, options: [...by_flags.values()] };
}

type Script = (name: string, commands: CommandOutline[], own: OptionOutline[], asked: Asked) => string;

const SCRIPTS: Record<Shell, Script> = { bash, zsh, fish };

function bash(name: string, commands: CommandOutline[], own: OptionOutline[], asked: Asked): string {
  const reply = (option: OptionOutline) =>
    option.flags.some((flag) => asked.options.includes(flag)) ? `_${name}_ask; return` : bashReply(option);
  const flags = (options: OptionOutline[]) => options.flatMap((option) => option.flags).join(' ');
  const valueCases = [...commands, { name: '', options: own }].flatMap((command) =>
    command.options
      .filter((option) => option.value !== null)
      .map((option) => {
        const pattern = option.flags.map((flag) => `'${command.name} ${flag}'`).join('|');
        return `    ${pattern}) ${reply(option)} ;;`;
      }),
  );
  const wordCases = commands.map(
    (command) => `    ${command.name}) words='${[flags(command.options), ...command.values].join(' ')}' ;;`,
  );
  const names = commands.map((command) => command.name);
  return `# ${name} completion bash >> ~/.bash_completion
${asked.commands.length > 0 ? bashAsk(name) : ''}_${name}() {
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
${asked.commands.length > 0 ? bashAsking(name, asked.commands) : ''}  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -F _${name} ${name}
`;
}

/** What it is told is inserted as it is: quoted already, and neither expanded nor taken for local files. */
function bashAsk(name: string): string {
  return `_${name}_ask() {
  mapfile -t COMPREPLY < <(command ${name} ${COMPLETE} bash "\${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" </dev/null 2>/dev/null)
  if [[ \${#COMPREPLY[@]} == 1 && \${COMPREPLY[0]} == */ ]]; then compopt -o nospace 2>/dev/null; fi
}
`;
}

function bashAsking(name: string, commands: readonly string[]): string {
  return `  if [[ $word != -* ]]; then
    case $command in
      cp)
        if [[ $previous == : || $word == *:* ]]; then _${name}_ask; return; fi
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null
        return ;;
      ${commands.filter((each) => each !== 'cp').join('|')})
        _${name}_ask
        if [[ \${#COMPREPLY[@]} != 0 ]]; then return; fi ;;
    esac
  fi
`;
}

function bashReply({ value, values }: OptionOutline): string {
  if (values.length > 0) return `COMPREPLY=($(compgen -W '${values.join(' ')}' -- "$word")); return`;
  return isPath(value) ? 'COMPREPLY=($(compgen -f -- "$word")); return' : 'return';
}

function zsh(name: string, commands: CommandOutline[], own: OptionOutline[], asked: Asked): string {
  const argument = ({ flags, description, value, values }: OptionOutline) => {
    const is_asked = flags.some((flag) => asked.options.includes(flag));
    const action =
      values.length > 0 ? `(${values.join(' ')})` : isPath(value) ? '_files' : is_asked ? `_${name}_ask` : '';
    const what = value === null ? '' : `:${value}:${action}`;
    return flags.map((flag) => `'${flag}[${zshText(description)}]${what}'`).join(' ');
  };
  const cases = commands.map((command) => {
    const values = zshArguments(name, command, asked.commands);
    return `        ${command.name}) _arguments ${command.options.map(argument).join(' ')}${values} ;;`;
  });
  const names = commands.map((command) => `'${command.name}:${zshText(command.description)}'`);
  return `#compdef ${name}
# ${name} completion zsh > "\${fpath[1]}/_${name}"
${asked.commands.length > 0 ? zshAsk(name) : ''}_${name}() {
  local context state line
  local -a typed=("\${(@Q)words[1,CURRENT]}")
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

function zshArguments(
  name: string,
  { name: command, values }: CommandOutline,
  asked: readonly string[],
): string {
  const fixed = values.length > 0 ? `(${values.join(' ')})` : '';
  if (!asked.includes(command)) return fixed && ` '*:argument:${fixed}'`;
  return fixed ? ` '1:argument:${fixed}' '*:argument:_${name}_ask'` : ` '*:argument:_${name}_ask'`;
}

/** zsh quotes what it inserts by itself. */
function zshAsk(name: string): string {
  return `_${name}_ask() {
  if [[ $words[1] == cp && $PREFIX != :* ]]; then _files; return; fi
  local -a offered=("\${(@f)$(command ${name} ${COMPLETE} words "\${(@)typed[2,-1]}" </dev/null 2>/dev/null)}")
  local -a folders=(\${(M)offered:#*/}) others=(\${offered:#*/})
  compadd -S '' -a -- folders
  compadd -a -- others
}
`;
}

/** The text without the characters that end a quoted description or a field in it. */
function zshText(text: string): string {
  return text.replace(/[[\]:'\\]/g, ' ');
}

function fish(name: string, commands: CommandOutline[], own: OptionOutline[], asked: Asked): string {
  const ask = `(command ${name} ${COMPLETE} words (commandline -opc)[2..] (commandline -ct | string unescape; or commandline -ct) </dev/null 2>/dev/null)`;
  const lines = [
    `# ${name} completion fish > ~/.config/fish/completions/${name}.fish`,
    `complete -c ${name} -f`,
  ];
  const offer = (when: string, option: OptionOutline) => {
    const flags = option.flags.map((flag) =>
      flag.startsWith('--') ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
    );
    lines.push(
      `complete -c ${name} ${when} ${flags.join(' ')}${option.flags.some((flag) => asked.options.includes(flag)) ? ` -xa '${ask}'` : fishValue(option)} -d '${fishText(option.description)}'`,
    );
  };
  for (const option of own) offer('-n __fish_use_subcommand', option);
  for (const command of commands) {
    const seen = `-n '__fish_seen_subcommand_from ${command.name}'`;
    lines.push(
      `complete -c ${name} -n __fish_use_subcommand -a ${command.name} -d '${fishText(command.description)}'`,
    );
    if (command.values.length > 0) lines.push(`complete -c ${name} ${seen} -a '${command.values.join(' ')}'`);
    if (asked.commands.includes(command.name)) {
      lines.push(`complete -c ${name} ${seen} ${command.name === 'cp' ? '-F ' : ''}-a '${ask}'`);
    }
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
