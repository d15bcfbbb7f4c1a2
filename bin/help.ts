import { Argument, type Command, type Option } from 'commander';
import { closestTo } from '../src/base/closest.ts';
import type { Asked } from '../src/ctl/complete/asked.ts';
import {
  type CommandOutline,
  completionScript,
  type OptionOutline,
  SHELLS,
  type Shell,
} from '../src/ctl/completion.ts';

/** What a command's help ends with. */
export interface Guide {
  /** Two lines as they are typed, without the program's name. */
  examples: [string, string];
  /** Commands of the program that are of interest beside this one. */
  related: string[];
}

/** The guides of a program by command: the words that follow the program's name, none for the program itself. */
export type Guides = Record<string, Guide>;

/** Adds to the help of a program and of each of its commands what `guides` has for it. */
export function addGuides(program: Command, guides: Guides): void {
  const visit = (command: Command, words: string[]) => {
    const guide = guides[words.join(' ')];
    if (guide) command.addHelpText('after', guideText(program.name(), guide));
    for (const each of command.commands) visit(each, [...words, each.name()]);
  };
  visit(program, []);
}

function guideText(name: string, { examples, related }: Guide): string {
  const lines = examples.map((example) => `  ${`${name} ${example}`.trim()}`);
  const others = related.length === 0 ? [] : ['', `Related: ${related.join(', ')}`];
  return ['', 'Examples:', ...lines, ...others].join('\n');
}

/** The help of every command names the program's own options, which the program's help explains. */
export function nameGlobalOptions(program: Command): void {
  const names = program.options.flatMap(({ long }) => (long && long !== '--version' ? [long] : []));
  const text = `\nGlobal options (explained by ${program.name()} --help): ${names.join(', ')}`;
  const visit = (command: Command) => {
    command.addHelpText('after', text);
    command.commands.forEach(visit);
  };
  program.commands.forEach(visit);
}

/**
 * Ends `program`, which has no command `word`, with an error that names the one that was probably meant; it is
 * `otherwise` where none is close.
 */
export function unknownCommand(program: Command, word: string, otherwise?: string): never {
  const meant = closestTo(
    word,
    program.commands.map((each) => each.name()),
  );
  const error = `unknown command '${word}'`;
  const message = meant === null ? (otherwise ?? error) : `${error} (Did you mean ${meant}?)`;
  return program.error(message, { code: 'commander.unknownCommand' });
}

/** Adds the command that prints a shell's completion of the program to `print`; `asked` is what its script asks the program. */
export function addCompletion(
  program: Command,
  print: (script: string) => void | Promise<void>,
  common: 'everywhere' | 'alone' = 'alone',
  asked?: Asked,
): void {
  program
    .command('completion')
    .description('print the completion script for a shell')
    .addArgument(new Argument('<shell>').choices(SHELLS))
    .action((shell: Shell) => {
      const own = program.options.map(optionOutline);
      const commands = program.commands.map(commandOutline);
      const shared = common === 'everywhere' ? own : [];
      const outlines = commands.map((each) => ({ ...each, options: [...each.options, ...shared] }));
      return print(completionScript(shell, program.name(), outlines, own, asked));
    });
}

function commandOutline(command: Command): CommandOutline {
  const nested = command.commands;
  return {
    name: command.name(),
    description: command.description(),
    options: [command, ...nested].flatMap((each) => each.options).map(optionOutline),
    values: [
      ...nested.map((each) => each.name()),
      ...command.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
    ],
  };
}

function optionOutline({ short, long, description, flags, argChoices }: Option): OptionOutline {
  return {
    flags: [short, long].filter((flag) => flag !== undefined),
    description,
    value: /<(.+)>/.exec(flags)?.[1] ?? null,
    values: argChoices ?? [],
  };
}
