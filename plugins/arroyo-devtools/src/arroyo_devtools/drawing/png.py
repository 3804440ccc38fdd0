"""SVG to PNG, by resvg, which is an extra."""

from __future__ import annotations

from arroyo_core.errors import SetupError

#: Pixels for a unit of the SVG, so that small text is sharp.
_ZOOM = 2.0
_FONT = "font-family=\"'DejaVu Sans Mono', 'Liberation Mono', Menlo, Consolas, 'Courier New', monospace\""
_PROBE = f'<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20"><text y="16" {_FONT}>%s</text></svg>'


def png_of(svg: str) -> bytes:
    """The picture on white. Raises `SetupError` without the extra, and on a machine without a font."""
    try:
        import resvg_py
    except ImportError as error:
        raise SetupError(
            "a PNG needs resvg, which is not installed: pip install 'arroyo-devtools[png]', or draw an .svg"
        ) from error
    # resvg leaves out text for which it finds no font, and says nothing.
    if resvg_py.svg_to_bytes(svg_string=_PROBE % "M") == resvg_py.svg_to_bytes(svg_string=_PROBE % ""):
        raise SetupError(
            "a PNG needs a monospaced font, and this machine has none that is known: "
            "install one (on Debian: fonts-dejavu-core), or draw an .svg"
        )
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=_ZOOM, background="#ffffff"))
