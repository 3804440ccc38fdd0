"""What formats of lines share: blocks of lines, bad ones among them, timestamps as text, compressed files."""
