"""Completion scripts for bash, zsh and fish, made of the words of the parser.

The scripts know everything but the names of operators: for those they ask `arroyo completion --operators`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from arroyo_devtools.completion.words import Command, Kind, Value

_BASH = """\
# Completion of arroyo for bash. In ~/.bashrc: eval "$(arroyo completion bash)"
_arroyo() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" command="" option="" options="" words="" kind="" place=0 i
    # The words before this one are commands, options, their values, and values of the command.
    for ((i = 1; i < COMP_CWORD; i++)); do
        # Bash makes three words of --option=value.
        if [[ ${{COMP_WORDS[i]}} == "=" ]]; then continue; fi
        if [[ -n $option ]]; then option=""; continue; fi
        case "$command ${{COMP_WORDS[i]}}" in
{paths}
                command="${{command:+$command }}${{COMP_WORDS[i]}}"; place=0 ;;
{valued}
                option="${{COMP_WORDS[i]}}" ;;
            *" -"*) ;;
            *) place=$((place + 1)) ;;
        esac
    done
    if [[ $word == "=" ]]; then word=""; fi
    if [[ -n $option ]]; then
        case "$command $option" in
{option_values}
        esac
    else
        case "$command" in
{options}
        esac
        case "$command $place" in
{values}
        esac
        if [[ $word == -* ]]; then words="$options" kind=""; fi
    fi
    local IFS=$'\\n'
    case "$kind" in
        file) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$word")) ;;
        folder) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$word")) ;;
        operator) COMPREPLY=($(compgen -W "$("$1" completion --operators 2>/dev/null)" -- "$word")) ;;
        *) IFS=$' \\n'; COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    esac
}}
complete -F _arroyo arroyo
"""
_ZSH = """\
#compdef arroyo
# Completion of arroyo for zsh, through its support for completions of bash.
# In ~/.zshrc, after compinit: eval "$(arroyo completion zsh)"
autoload -U +X bashcompinit && bashcompinit
"""
_FISH = """\
# Completion of arroyo for fish. Put it into ~/.config/fish/completions/arroyo.fish
function __arroyo_command
    set -l command ""
    for word in (commandline -opc)[2..-1]
        set -l next (string trim -- "$command $word")
        if contains -- "$next" {paths}
            set command "$next"
        end
    end
    echo "$command"
end
complete -c arroyo -f
"""


def bash_script(commands: Sequence[Command]) -> str:
    return _BASH.format(
        paths=_pattern(f"{' '.join(command.path[:-1])} {command.path[-1]}" for command in commands if command.path),
        valued=_pattern(key for key, _ in _valued_options(commands)),
        option_values="\n".join(_bash_case(key, value) for key, value in _valued_options(commands)),
        options="\n".join(
            f'            "{command.name}") options="{" ".join(_flags(command))}" ;;' for command in commands
        ),
        values="\n".join(line for command in commands for line in _bash_values(command)),
    )


def zsh_script(commands: Sequence[Command]) -> str:
    return _ZSH + bash_script(commands).partition("\n")[2]


def fish_script(commands: Sequence[Command]) -> str:
    paths = " ".join(_fish_quoted(command.name) for command in commands if command.path)
    return _FISH.format(paths=paths) + "".join(line for command in commands for line in _fish_lines(command, commands))


def _flags(command: Command) -> list[str]:
    return [flag for option in command.options for flag in option.flags]


def _valued_options(commands: Sequence[Command]) -> list[tuple[str, Value]]:
    return [
        (f"{command.name} {flag}", option.value)
        for command in commands
        for option in command.options
        if option.value is not None
        for flag in option.flags
    ]


def _pattern(keys: Iterator[str]) -> str:
    return "            " + "|".join(f'"{key}"' for key in keys) + ")"


def _bash_case(key: str, value: Value) -> str:
    return f'            "{key}") {_bash_setting(value)} ;;'


def _bash_setting(value: Value) -> str:
    return f'words="{" ".join(value.choices)}"' if value.choices else f"kind={value.kind}"


def _bash_values(command: Command) -> Iterator[str]:
    if command.subcommands:
        yield f'            "{command.name} "*) words="{" ".join(command.subcommands)}" ;;'
        return
    for place, value in enumerate(command.values):
        # Whatever comes behind the last is more of it.
        number = "*" if place == len(command.values) - 1 else f'"{place}"'
        yield f'            "{command.name} "{number}) {_bash_setting(value)} ;;'


def _fish_lines(command: Command, commands: Sequence[Command]) -> Iterator[str]:
    condition = f'test (__arroyo_command) = "{command.name}"'
    at = f"complete -c arroyo -n {_fish_quoted(condition)}"
    helps = {other.path: other.help for other in commands}
    for name in command.subcommands:
        yield f"{at} -a {name} -d {_fish_quoted(helps[(*command.path, name)])}\n"
    for option in command.options:
        flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
        value = f" {_fish_value(option.value)}" if option.value is not None else ""
        yield f"{at} {flags}{value} -d {_fish_quoted(option.help)}\n"
    # Fish does not count: whatever one of them can be is offered.
    for positional in dict.fromkeys(command.values):
        yield f"{at} {_fish_value(positional, is_option=False)}\n"


def _fish_value(value: Value, *, is_option: bool = True) -> str:
    if value.choices:
        return f"{'-x ' if is_option else ''}-a {_fish_quoted(' '.join(value.choices))}"
    if value.kind is Kind.OPERATOR:
        return f"{'-x ' if is_option else ''}-a '(arroyo completion --operators 2>/dev/null)'"
    if value.kind in (Kind.FILE, Kind.FOLDER):
        return "-r -F" if is_option else "-F"
    return "-x" if is_option else "-f"


def _fish_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
