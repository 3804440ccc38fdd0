"""Text of others, as it may be written to a terminal.

Rows, errors that quote them, and names in storage are what their senders made them: a terminal would take some of that
for commands, which move the cursor, rename the window, or show text in another order than it has.
"""

from __future__ import annotations

import re

#: C0 but for tabs and line ends, DEL, C1, line separators, and what changes the direction of text.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
_LINE_ENDS = {ord("\n"): "\\n", ord("\t"): "\\t"}


def visible(text: str, *, is_one_line: bool = False) -> str:
    """The text with all that a terminal would obey written out: `\\x1b`, `\\u202e`; all else is as it was.

    With `is_one_line` line ends and tabs are written out, too. JSON stays the same JSON.
    """
    if text.isprintable():
        return text
    if is_one_line:
        text = text.translate(_LINE_ENDS)
    return _COMMANDS.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"
